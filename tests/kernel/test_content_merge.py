"""Laws of the merge of contents, on random histories."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import content_rules
from nessie_cli.kernel.content_changes import ContentStates, OtherContents, Position
from nessie_cli.kernel.content_merge import ContentChoice, ContentMerge, Verdict, merge_contents
from nessie_cli.kernel.forms import content_id_of
from nessie_cli.kernel.outcome import KeyOption
from nessie_cli.model import MergeBehavior, Namespace
from tests.kernel.content_states import (
    History,
    Item,
    State,
    applied,
    conflicts_of,
    conflicts_with_options,
    keys_by_id,
    merge,
    positions,
    records,
)

COUNT = int(os.environ.get("NESSIE_TEST_MERGES", "4000"))
"""The number of random histories. A long run sets it to 100,000."""
HISTORIES = [range(start, start + COUNT // 8) for start in range(0, COUNT, COUNT // 8)]

Sides = tuple[State, State, State]

every_history = pytest.mark.parametrize("seeds", HISTORIES, ids=lambda seeds: str(seeds.start))

OURS, THEIRS = MergeBehavior.DROP, MergeBehavior.FORCE


def contested(result: ContentMerge) -> list[Verdict]:
    return [verdict for verdict in result.verdicts if not verdict.is_settled]


def ids(state: dict[bytes, bytes]) -> list[bytes]:
    return sorted(content_id_of(record) for record in state.values())


def expected(base: State, ours: State, theirs: State) -> dict[bytes, bytes] | None:
    """Returns the merged state by a plain reading of the rules; None if there is a conflict."""
    before, here, there = map(positions, (base, ours, theirs))
    places: dict[bytes, list[bytes]] = {}
    for id_ in {*before, *here, *there}:
        b, o, t = before.get(id_), here.get(id_), there.get(id_)
        result: Position | None
        if t in (o, b):
            result = o
        elif o == b:
            result = t
        elif o is None or t is None:
            return None
        else:
            old = b or (None, None)
            parts = []
            for x, y, z in zip(old, o, t, strict=True):
                if y != z and x not in (y, z):
                    return None
                parts.append(z if y == x else y)
            result = Position(*parts)
        if result is not None:
            places.setdefault(result.key, []).append(result.record)
    merged = {}
    for key, claims in places.items():
        if len(claims) == 2 and any(record[0] != Namespace.payload for record in claims):
            return None
        # Two namespaces are one: that of theirs.
        merged[key] = claims[0] if len(claims) == 1 else theirs[key].record()
    return merged


@every_history
def test_a_merge_follows_the_rules(seeds: range) -> None:
    for seed in seeds:
        history = History(seed)
        result = merge(history.base, history.ours, history.theirs)
        outcome = None if conflicts_of(result) else applied(history.ours, result)
        assert outcome == expected(history.base, history.ours, history.theirs), seed


@every_history
def test_no_content_gets_two_keys_and_none_is_lost(seeds: range) -> None:
    for seed in seeds:
        history = History(seed)
        for default in MergeBehavior:
            result = merge(history.base, history.ours, history.theirs, default=default)
            if conflicts_of(result):
                continue
            after = ids(applied(history.ours, result))
            assert len(after) == len(set(after)), seed
            here, there = positions(history.ours), positions(history.theirs)
            namespaces = {
                v.states.content_id
                for v in result.verdicts
                if v.states.ours and v.states.ours.record[0] == Namespace.payload
            }
            assert {*here}.intersection(there) - namespaces <= set(after), seed


@every_history
def test_the_sides_are_symmetric(seeds: range) -> None:
    for seed in seeds:
        history = History(seed)
        one = merge(history.base, history.ours, history.theirs)
        other = merge(history.base, history.theirs, history.ours)
        assert {c.content_id for c in conflicts_of(one) if c.type != "KEY_EXISTS"} == {
            c.content_id for c in conflicts_of(other) if c.type != "KEY_EXISTS"
        }, seed
        assert {c.key for c in conflicts_of(one) if c.type == "KEY_EXISTS"} == {
            c.key for c in conflicts_of(other) if c.type == "KEY_EXISTS"
        }, seed
        if not conflicts_of(one):
            left, right = applied(history.ours, one), applied(history.theirs, other)
            assert {k for k in left if left[k] != right.get(k)} == {
                k for k in right if right[k] != left.get(k) and right[k][0] == Namespace.payload
            }, seed


@every_history
@pytest.mark.parametrize("behavior", [OURS, THEIRS])
def test_a_decision_settles_the_conflict_that_it_names(
    seeds: range, behavior: MergeBehavior
) -> None:
    for seed in seeds:
        history = History(seed)
        sides = (history.base, history.ours, history.theirs)
        before = merge(*sides)
        for conflict in conflicts_of(before):
            name = conflict.content_id if conflict.is_ambiguous else None
            after = merge(*sides, choices=(ContentChoice(conflict.key, behavior, name),))
            assert not after.unused, seed
            left = {(c.content_id, c.key) for c in conflicts_of(after)}
            assert left < {(c.content_id, c.key) for c in conflicts_of(before)}, seed
            assert (conflict.content_id, conflict.key) not in left, seed
            first = ContentChoice(conflict.key, behavior, name)
            for other in conflicts_of(after):
                second = ContentChoice(
                    other.key, behavior, other.content_id if other.is_ambiguous else None
                )
                assert not merge(*sides, choices=(first, second)).unused, seed


@every_history
@pytest.mark.parametrize("behavior", [OURS, THEIRS])
def test_all_decisions_together_settle_everything(seeds: range, behavior: MergeBehavior) -> None:
    for seed in seeds:
        history = History(seed)
        sides = (history.base, history.ours, history.theirs)
        conflicts = conflicts_of(merge(*sides))
        choices = tuple(
            ContentChoice(c.key, behavior, c.content_id if c.is_ambiguous else None)
            for c in conflicts
        )
        after = merge(*sides, choices=choices)
        assert not conflicts_of(after), seed
        state = applied(history.ours, after)
        assert len(ids(state)) == len(set(ids(state))), seed
        if behavior is THEIRS and conflicts:
            edits = {**merge(*sides).edits_if_theirs_win()}
            assert edits == after.edits(), seed


@every_history
def test_options_say_what_decisions_one_after_the_other_do(seeds: range) -> None:
    for seed in seeds:
        history, rng = History(seed), random.Random(seed)
        sides = (history.base, history.ours, history.theirs)
        choices: tuple[ContentChoice, ...] = ()
        conflicts = conflicts_with_options(sides, choices)
        while conflicts:
            conflict = rng.choice(conflicts)
            name = conflict.content_id if conflict.is_ambiguous else None
            before = keys_after(history.ours, merge(*sides, choices=choices))
            results = {}
            for behavior in (OURS, THEIRS):
                given = (*choices, ContentChoice(conflict.key, behavior, name))
                try:
                    results[behavior] = merge(*sides, choices=given)
                except InvalidInput:
                    continue
            assert {option.behavior for option in conflict.options} == results.keys(), seed
            for option in conflict.options:
                after = keys_after(history.ours, results[option.behavior])
                check_option(seed, sides, option, before, after)
            if not conflict.options:
                break
            chosen = rng.choice(conflict.options)
            choices = (*choices, ContentChoice(conflict.key, chosen.behavior, name))
            conflicts = conflicts_with_options(sides, choices)


@pytest.mark.parametrize("unlike_theirs", [2, 3])
def test_the_options_of_many_conflicts_cost_as_much_as_their_number(unlike_theirs: int) -> None:
    """All contents share keys with each other: both sides move each one to the next key, or so."""

    def cost(size: int) -> int:
        names = [b"%03d" % number for number in range(size)]

        def moved(by: int) -> State:
            return {names[(n + by) % size]: Item(n, 0) for n in range(size)}

        ours, theirs = moved(unlike_theirs), positions(moved(1))
        others = OtherContents(lambda key: ours[key].record() if key in ours else None, theirs.get)
        merged = 0

        def again(
            contents: Sequence[ContentStates], choices: Sequence[ContentChoice]
        ) -> ContentMerge:
            nonlocal merged
            merged += len(contents)
            return merge_contents(contents, others, choices)

        conflicts = content_rules.conflicts_of(
            merge(moved(0), ours, moved(1)), again, lambda *_: False
        )
        assert [len(conflict.options) for conflict in conflicts] == [2] * size
        return merged

    assert cost(200) == 2 * cost(100)


def keys_after(ours: State, result: ContentMerge) -> dict[bytes, bytes]:
    """Returns the key of each content after a merge; of one in conflict, that on ours."""
    keys: dict[bytes, bytes | None] = {**keys_by_id(records(ours))}
    for verdict in result.verdicts:
        position = verdict.result if verdict.is_settled else verdict.states.ours
        keys[verdict.states.content_id] = position and position.key
    return {id_: key for id_, key in keys.items() if key is not None}


def check_option(
    seed: int,
    sides: Sides,
    option: KeyOption,
    was: Mapping[bytes, bytes],
    now: Mapping[bytes, bytes],
) -> None:
    """Checks that an option lists every content of ours and every new one that is then absent."""
    base, ours, theirs = (keys_by_id(records(side)) for side in sides)
    gone = was.keys() - now.keys()
    assert set(option.deletes) == {ours[i] for i in gone & ours.keys()}, seed
    assert set(option.renames) == {
        (ours[i], key) for i, key in now.items() if i in ours and key not in (ours[i], was.get(i))
    }, seed
    new = theirs.keys() - ours.keys() - base.keys()
    assert {theirs[i] for i in new & gone} <= set(option.leaves_out), seed
    assert set(option.leaves_out) <= {theirs[i] for i in new - now.keys()}, seed


@every_history
def test_ours_and_theirs_as_default(seeds: range) -> None:
    for seed in seeds:
        history = History(seed)
        sides = (history.base, history.ours, history.theirs)
        assert merge(*sides, default=OURS).edits() == {}, seed
        after = applied(history.ours, merge(*sides, default=THEIRS))
        for key in history.theirs.keys() | history.base.keys():
            here, there = history.base.get(key), history.theirs.get(key)
            if here != there and there is not None:
                assert after[key] == there.record(), seed
