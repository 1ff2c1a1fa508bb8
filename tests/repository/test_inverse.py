"""Random histories, reverted and compared with a naive three-way merge of contents."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    Operation,
    Put,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.edits import operations_for
from nessie_cli.repository.inverse import Inverse, InvertedCommits, UnusedDecision, invert
from nessie_cli.repository.opening import create

from .vocabulary import key, namespace, table

SEEDS = 200
NAMES = ("a", "b", "c", "n", "n.a", "n.b")
State = dict[ContentKey, Content]
Position = tuple[ContentKey, Content]


@pytest.fixture
def repository() -> Iterator[Repository]:
    with create("memory:") as repository:
        yield repository


def state_of(repository: Repository, at: str = "main") -> State:
    state = {e.key: e.content for e in repository.entries(at, content=True) if e.content}
    ids = [content.id for content in state.values()]
    assert len(set(ids)) == len(ids), "a content has two keys"
    return state


def values(state: Mapping[ContentKey, Content]) -> State:
    return {key: content.with_id(None) for key, content in state.items()}


def by_id(state: State) -> dict[str | None, Position]:
    return {content.id: (key, content) for key, content in state.items()}


def random_operations(rng: random.Random, state: State) -> list[Operation]:
    """Returns a creation, an update, a deletion, a rename, a swap or a replacement."""
    keys = [key(name) for name in NAMES]
    fresh = table(rng.randrange(6))
    one, two = rng.sample(keys, 2)
    match rng.choice(
        ("create", "update", "delete", "rename", "rename", "swap", "replace", "space")
    ):
        case "create" if one not in state:
            return [Put(one, fresh)]
        case "space" if key("n") not in state:
            return [Put(key("n"), namespace("n"))]
        case "rename" if one in state and two not in state:
            return [Delete(one), Put(two, state[one])]
        case "swap" if one in state and two in state:
            return [Put(one, state[two], state[one]), Put(two, state[one], state[two])]
        case kind if one in state:
            update = Put(one, fresh.with_id(state[one].id), state[one])
            return {"update": [update], "delete": [Delete(one)]}.get(
                kind, [Delete(one), Put(one, fresh)]
            )
    return []


def random_commit(rng: random.Random, repository: Repository) -> str | None:
    """Makes a commit of one or two changes of different keys. Invalid ones are left out."""
    state = state_of(repository)
    operations = random_operations(rng, state)
    more = random_operations(rng, state)
    if not {op.key for op in operations} & {op.key for op in more}:
        operations += more
    if not operations:
        return None
    try:
        return repository.commit("main", operations, CommitMeta("change")).reference.hash
    except (ReferenceConflict, InvalidInput):
        return None


def random_history(rng: random.Random, repository: Repository, length: int) -> list[str]:
    hashes = [random_commit(rng, repository) for _ in range(length)]
    return [hash_ for hash_ in hashes if hash_ is not None]


def committed(repository: Repository, inverse: Inverse) -> bool:
    """Commits an inverse. Returns False if it changes nothing, or if namespaces prevent it."""
    operations = [
        op.operation for op in operations_for(inverse.edits, inverse.state, inverse.origins)
    ]
    if not operations:
        return False
    head, before = repository.reference("main").hash, state_of(repository)
    try:
        repository.commit("main", operations, CommitMeta("trial"), expected_hash=head, dry_run=True)
    except ReferenceConflict as error:
        if all("NAMESPACE" in conflict.type for conflict in error.conflicts):
            return False
        raise
    repository.commit("main", operations, CommitMeta("revert"), expected_hash=head)
    after = state_of(repository)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed == {op.key for op in operations}, "what is listed is what changed"
    return True


def before_of(repository: Repository, hash_: str) -> InvertedCommits:
    return InvertedCommits(hash_, repository.commit_at(hash_).parent)


def renewed(base: State, head: State, theirs: State) -> tuple[State, State]:
    """Returns base and theirs with the present ids of contents that were created again.

    Such a content has its earlier key and value.
    """
    before, after, here = by_id(theirs), by_id(base), by_id(head)
    changed = [id_ for id_ in before | after if before.get(id_) != after.get(id_)]
    used = before.keys() | after.keys()
    again: dict[str | None, str | None] = {}
    for side in (theirs, base):
        for name in sorted(side):
            old, new = side[name], head.get(name)
            if old.id not in changed or old.id in here or old.id in again or new is None:
                continue
            if new.id not in used and values({name: old}) == values({name: new}):
                again[old.id] = new.id
                used |= {new.id}
    return (
        {name: c.with_id(again.get(c.id, c.id)) for name, c in base.items()},
        {name: c.with_id(again.get(c.id, c.id)) for name, c in theirs.items()},
    )


def merged(base: object, ours: object, theirs: object) -> tuple[bool, object]:
    if theirs in (base, ours):
        return True, ours
    return ours == base, theirs


def expected_state(base: State, head: State, theirs: State) -> State | None:
    """Returns the naive merge of contents by id, without ids; None if it has a conflict."""
    base, theirs = renewed(base, head, theirs)
    sides = [by_id(side) for side in (base, head, theirs)]
    result: list[Position] = []
    for id_ in sides[0] | sides[1] | sides[2]:
        b, o, t = (side.get(id_) for side in sides)
        if t == b:
            result += [o] if o else []
            continue
        is_clean, position = merged(b, o, t)
        if not is_clean and b and o and t:
            (same_key, name), (same_value, value) = (merged(b[i], o[i], t[i]) for i in range(2))
            is_clean, position = same_key and same_value, (name, value)
        if not is_clean:
            return None
        result += [position] if position else []
    names = [name for name, _ in result]
    if len(set(names)) < len(names):
        return None
    return {name: value.with_id(None) for name, value in result}


@pytest.mark.parametrize("seed", range(0, SEEDS, 10))
def test_the_last_commit_is_reverted_and_reverted_again(seed) -> None:
    for number in range(seed, seed + 10):
        rng = random.Random(number)
        with create("memory:") as repository:
            hashes = random_history(rng, repository, 8)
            if not hashes:
                continue
            after, commits = state_of(repository), before_of(repository, hashes[-1])
            before = state_of(repository, commits.before)
            inverse = invert(repository, commits, hashes[-1])
            assert not inverse.conflicts
            if not committed(repository, inverse):
                assert values(before) == values(after)
                continue
            back = state_of(repository)
            assert values(back) == values(before), number
            for name, content in before.items():
                # An equal content that has the key already stays.
                is_equal = name in after and after[name].with_id(content.id) == content
                assert back[name] == (after[name] if is_equal else content), number
            head = repository.reference("main").hash
            assert committed(repository, invert(repository, before_of(repository, head), head))
            assert values(state_of(repository)) == values(after), number
            # The first revert again: everything came back since.
            head = repository.reference("main").hash
            again = invert(repository, commits, head)
            if not again.conflicts and committed(repository, again):
                assert values(state_of(repository)) == values(before), number


@pytest.mark.parametrize("seed", range(1000, 1000 + SEEDS, 10))
def test_an_older_commit_is_reverted_content_by_content(seed) -> None:
    for number in range(seed, seed + 10):
        rng = random.Random(number)
        with create("memory:") as repository:
            hashes = random_history(rng, repository, 10)
            if not hashes:
                continue
            commits = before_of(repository, rng.choice(hashes))
            if rng.random() < 0.3:
                first, last = sorted(rng.choices(range(len(hashes)), k=2))
                commits = InvertedCommits(hashes[last], before_of(repository, hashes[first]).before)
            head, ours = repository.reference("main").hash, state_of(repository)
            base, theirs = (state_of(repository, hash_) for hash_ in commits)
            inverse = invert(repository, commits, head)
            expected = expected_state(base, ours, theirs)
            if expected is not None:
                assert not inverse.conflicts, (number, inverse.conflicts)
                if committed(repository, inverse):
                    assert values(state_of(repository)) == expected, number
                    reverted = repository.reference("main").hash
                    undo = invert(repository, before_of(repository, reverted), reverted)
                    assert committed(repository, undo)
                    assert values(state_of(repository)) == values(ours), number
            elif inverse.conflicts:
                check_decisions(repository, commits, head, inverse, (base, ours, theirs))


def check_decisions(
    repository: Repository,
    commits: InvertedCommits,
    head: str,
    inverse: Inverse,
    sides: tuple[State, State, State],
) -> None:
    """Decides every conflict, by its key if that is enough, for one side and for the other."""
    older = renewed(*sides)
    base, ours, theirs = map(by_id, (older[0], sides[1], older[1]))
    for behavior in (MergeBehavior.DROP, MergeBehavior.FORCE):
        decided: dict[str, KeyBehavior] = {}
        result = inverse
        while result.conflicts:
            for c in result.conflicts:
                assert c.key is not None
                assert c.content_id is not None
                assert c.content_id not in decided, "a decision resolves its conflict"
                name = c.content_id if c.is_ambiguous else None
                decided[c.content_id] = KeyBehavior(c.key, behavior, content_id=name)
            result = invert(repository, commits, head, list(decided.values()))
        now = repository.reference("main").hash
        repository.assign_reference("main", head, expected_hash=now)
        if not committed(repository, result):
            continue
        after = by_id(state_of(repository))
        side = sides[1] if behavior is MergeBehavior.DROP else older[1]
        for id_ in decided:
            name = by_id(side).get(id_, [None])[0]
            if id_ in ours and name is not None:
                assert after[id_][0] == name
            elif name is not None:
                assert values(state_of(repository))[name] == values(side)[name]
            elif id_ in after:
                # Equal to the content that takes its key, so it stays instead.
                name, content = after[id_]
                assert values(side)[name] == content.with_id(None)
        lost = (ours.keys() & base.keys() & theirs.keys()) - after.keys()
        assert not lost, "a content that all three states have is never lost"


def test_a_decision_about_another_content_is_refused(repository) -> None:
    repository.commit("main", [Put(key("a"), table(1)), Put(key("b"), table(1))], CommitMeta("1"))
    hash_ = repository.commit("main", [Delete(key("a"))], CommitMeta("2")).reference.hash
    with pytest.raises(UnusedDecision, match="b: the commit did not change this key"):
        invert(
            repository,
            before_of(repository, hash_),
            hash_,
            [KeyBehavior(key("b"), MergeBehavior.DROP)],
        )


def test_a_table_at_the_key_of_a_deleted_one_is_shown_and_kept_by_ours(repository) -> None:
    """The reverted commit changed a table that was deleted since; its key has another table."""
    repository.commit("main", [Put(key("a"), table(1))], CommitMeta("1"))
    first = state_of(repository)[key("a")]
    hash_ = repository.commit(
        "main", [Put(key("a"), table(2, first.id), first)], CommitMeta("2")
    ).reference.hash
    head = repository.commit(
        "main", [Delete(key("a")), Put(key("a"), table(3))], CommitMeta("3")
    ).reference.hash
    commits, before = before_of(repository, hash_), state_of(repository)
    (conflict,) = invert(repository, commits, head).conflicts
    assert (conflict.type, conflict.actual) == ("CONTENT_ID_DIFFERS", before[key("a")])
    kept = invert(repository, commits, head, [KeyBehavior(key("a"), MergeBehavior.DROP)])
    assert (kept.conflicts, kept.edits) == ((), {})
    content = IcebergTable(metadata_location="s3://edited", snapshot_id=7, id=before[key("a")].id)
    edited = KeyBehavior(key("a"), MergeBehavior.NORMAL, before[key("a")], content)
    assert committed(repository, invert(repository, commits, head, [edited]))
    assert state_of(repository) == {key("a"): content}
