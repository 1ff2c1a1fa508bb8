"""The state that a merge compares both sides with, if they have several merge bases.

Each of two branches may have merged an older state of the other (a criss-cross history). As in git,
their merge bases are then merged themselves, with the merge bases of these as base, and so on: the
result is the virtual base. Contents that conflict in such a merge are *contested*, and so are those
that share keys with them, and contents with one metadata file: the sides agreed on no state, so
they have a conflict as soon as ours and theirs differ. The states that would have to be merged are
part of the result, because a caller may be able to do that: for an Iceberg table, for example.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.content_changes import (
    ContentChanges,
    ContentStates,
    MergeSides,
    Position,
    ThreeWay,
)
from nessie_cli.kernel.content_merge import ContentMerge, merge_contents, merge_states
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of, has_metadata_file, with_content_id
from nessie_cli.kernel.history import merge_bases
from nessie_cli.kernel.merged_value import Value, merged_value
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import metadata_file


class _Contested(NamedTuple):
    """A contested content: it has a conflict, or was decided together with one that has one.

    `positions` are those in the states that were merged, older ones first. `decided_with`
    are the ids of the contents that it was decided together with. `merged` is its position in the
    merged state, if it has no conflict itself. `value` is its value, or the values to be merged.
    """

    positions: Sequence[Position]
    has_conflict: bool
    decided_with: frozenset[bytes]
    merged: Position | None
    value: Value


class _State(NamedTuple):
    """A key tree without the contested contents, and these by id."""

    root: Id
    contested: Mapping[bytes, _Contested]


class VirtualBase(NamedTuple):
    """The root of the base of a merge, and the values of contested contents by their ids."""

    root: Id
    contested: Mapping[bytes, Value]


def virtual_base(objects: Objects, bases: Sequence[Id], ours: Id, theirs: Id) -> VirtualBase:
    """Returns the base of a merge. `ours` and `theirs` are the roots of its sides.

    Costs one merge for each further merge base, also of the merge bases' merge bases: in a history
    of n such merges crosswise, O(n d log N). The new nodes become part of the draft, as git writes
    the trees of virtual bases.
    """
    state = _virtual_base(objects, tuple(bases))
    return VirtualBase(
        _with_contested(objects, state, [ours, theirs]),
        {id_: content.value for id_, content in state.contested.items()},
    )


_Bases = tuple[Id, ...]


def _virtual_base(objects: Objects, bases: _Bases) -> _State:
    """Merges merge bases, one after the other. A history can have more of them than calls nest."""
    states: dict[_Bases, _State] = {}
    steps: dict[_Bases, list[tuple[_Bases, Id]]] = {}
    waiting = [bases]
    while waiting:
        commits = waiting[-1]
        if commits not in steps:
            steps[commits] = [
                (tuple(merge_bases(objects, commits[:number], [commit])), commit)
                for number, commit in enumerate(commits[1:], 1)
            ]
        missing = [base for base, _ in steps[commits] if base not in states]
        if missing:
            waiting += missing
            continue
        state = _State(root_of(objects, commits[0]), {})
        for base, commit in steps[commits]:
            state = _merged(objects, states[base], state, root_of(objects, commit))
        states[waiting.pop()] = state
    return states[bases]


def _merged(objects: Objects, base: _State, ours: _State, theirs: Id) -> _State:
    """Merges a further state, without the contents in conflict.

    A content that was contested at the base no longer is if both sides agree about it. One that is
    contested in ours remains so.
    """
    root = _with_contested(objects, base, [ours.root, theirs])
    changes = [ThreeWay(*states) for states in tree.three_way(objects, root, ours.root, theirs)]
    contents = ContentChanges(objects, MergeSides(root, ours.root, changes, NO_COMMIT, NO_COMMIT))
    merge = merge_contents(contents.states, contents.others)
    edits = merge.edits()
    edits |= dict.fromkeys(contents.doubled_keys(edits))
    # A dictionary, because the base must not depend on the order of a set.
    conflicts = dict.fromkeys(
        each.states for v in merge.contested for each in (v, v.holder) if each
    )
    conflicts |= dict.fromkeys(
        v.states for v in merge.verdicts if v.states.content_id in ours.contested
    )
    conflicts |= dict.fromkeys(_sharing_files(objects, merge, contents, conflicts))
    contested = dict(ours.contested)
    for states, together in _decided_together(merge, conflicts, ours.contested).items():
        id_ = states.content_id
        earlier = [each[id_].positions for each in (base.contested, contested) if id_ in each]
        positions = dict.fromkeys(chain(*earlier, filter(None, states)))
        verdict = merge.verdict_of.get(states)
        contested[id_] = _Contested(
            positions=list(positions),
            has_conflict=states in conflicts,
            decided_with=together - {id_},
            merged=verdict.result if verdict else states.ours,
            value=_value(states, base.contested.get(id_), ours.contested.get(id_)),
        )
        edits |= dict.fromkeys(states.keys)
    return _State(edit(objects, ours.root, edits), contested)


def _sharing_files(
    objects: Objects,
    merge: ContentMerge,
    changes: ContentChanges,
    contested: Collection[ContentStates],
) -> list[ContentStates]:
    """Returns the contents to which a side gave a metadata file that another one has, too.

    The other one got it from a side, or is contested. Reads the values of all contents that a side
    changed.
    """
    contents = {verdict.states: None for verdict in merge.verdicts}
    compared = {states.content_id for states in contents}
    for position in changes.values_of_ours():
        if content_id_of(position.record) not in compared:
            contents[merge.unchanged(position)] = None
    records = [
        (states, position.record)
        for states in contents
        for position in dict.fromkeys((states.ours, states.theirs))
        if position is not None
        and (states in contested or states.base is None or position.record != states.base.record)
        and has_metadata_file(position.record)
    ]
    values = objects.each_content([record for _, record in records])
    by_file: defaultdict[str | None, dict[ContentStates, None]] = defaultdict(dict)
    for (states, _), content in zip(records, values, strict=True):
        by_file[metadata_file(content)][states] = None
    return [states for sharing in by_file.values() if len(sharing) > 1 for states in sharing]


def _value(states: ContentStates, base: _Contested | None, ours: _Contested | None) -> Value:
    """Returns the value of a content, or the values to be merged, also of contested states."""
    before, here, there = (position and position.record for position in states)
    return merged_value(base.value if base else before, ours.value if ours else here, there)


def _decided_together(
    merge: ContentMerge,
    conflicts: Iterable[ContentStates],
    earlier: Mapping[bytes, _Contested],
) -> dict[ContentStates, frozenset[bytes]]:
    """Returns contents in conflict and those that share keys with them, with the ids of these.

    `earlier` are the contents that ours does not have because they are contested there. A content
    that gets one of their keys is decided together with them, too.
    """
    together: defaultdict[ContentStates, set[bytes]] = defaultdict(set)
    for start in conflicts:
        if start in together:
            # Its relation to others is mutual.
            continue
        related = merge.related([start])
        for states in related:
            together[states].update(each.content_id for each in related)
    holders: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for id_, content in earlier.items():
        for key, _ in content.positions:
            holders[key].add(id_)
    for verdict in merge.verdicts:
        for key in verdict.states.keys if holders else ():
            if key in holders:
                for states in merge.related([verdict.states]):
                    together[states] |= holders[key]
    return {states: frozenset(ids) for states, ids in together.items()}


def _with_contested(objects: Objects, state: _State, sides: Sequence[Id]) -> Id:
    """Returns the root of a state with those contested contents in which the sides differ.

    A content gets a position with which all different sides conflict: one of its own, or of a
    content that it was decided together with. If there is none, it stays absent: then sides that
    have it conflict. A content without a conflict of its own is not contested if all sides have it,
    and agree about those that it was decided together with.
    """
    if not state.contested:
        return state.root
    at_sides = [_positions(objects, state, side) for side in sides]
    different = {id_: {at.get(id_) for at in at_sides} for id_ in state.contested}
    different = {id_: positions for id_, positions in different.items() if len(positions) > 1}
    possible = {id_: _possible(state, id_, different) for id_ in different}
    keys = {position.key for positions in possible.values() for position in positions}
    taken = tree.get(objects, state.root, keys).keys()
    edits: dict[bytes, bytes | None] = {}
    for positions in possible.values():
        for key, record in positions:
            if key not in edits and key not in taken:
                edits[key] = record
                break
    return edit(objects, state.root, edits)


def _possible(
    state: _State, id_: bytes, different: Mapping[bytes, set[Position | None]]
) -> list[Position]:
    """Returns the positions that a contested content can have at the base, the best one first."""
    content, at_sides = state.contested[id_], different[id_]
    is_open = content.has_conflict or any(
        state.contested[other].has_conflict for other in content.decided_with & different.keys()
    )
    if content.merged is not None and not is_open and None not in at_sides:
        return [content.merged]
    borrowed = (
        Position(key, with_content_id(record, id_))
        for other in sorted(content.decided_with)
        for key, record in state.contested[other].positions
    )
    return [p for p in (*content.positions, *borrowed) if _conflicts(p, at_sides)]


def _conflicts(base: Position, sides: Iterable[Position | None]) -> bool:
    """Returns whether all states of a content conflict with each other, compared with a base."""
    return all(merge_states(ContentStates(base, *pair))[1] for pair in combinations(sides, 2))


def _positions(objects: Objects, state: _State, side: Id) -> dict[bytes, Position]:
    """Returns the positions of the contested contents in a side, by content id."""
    return {
        content_id_of(record): Position(key, record)
        for key, _, record in tree.diff(objects, state.root, side)
        if record is not None and content_id_of(record) in state.contested
    }
