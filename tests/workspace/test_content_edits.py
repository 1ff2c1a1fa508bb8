"""Random batches as changes of contents: the same commit, and parts of it alone."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nessie_cli import connect
from nessie_cli.model import CommitMeta
from nessie_cli.workspace.content_edits import content_edits, operations_of, without_keys
from nessie_cli.workspace.staging import StagedList

from .test_staging import KEYS, Naive, a_catalog, key, steps, try_both


def staged_by(sequence, state) -> StagedList:
    naive, staged = Naive(), ()
    for step in sequence:
        staged = try_both(naive, staged, step, state)
    return staged


def committed(repository, staged: StagedList):
    """Commits operations, and returns the contents without the ids of new ones."""
    old = {content.id for content in repository.contents("main", KEYS).values()}
    if staged:
        repository.commit("main", [item.operation for item in staged], CommitMeta("staged"))
    assert list(repository.check()) == []
    found = repository.contents("main", KEYS)
    ids = [content.id for content in found.values()]
    assert len(set(ids)) == len(ids)
    return {
        name: content if content.id in old else content.with_id(None)
        for name, content in found.items()
    }


@settings(print_blob=True, deadline=None, max_examples=100)
@given(steps)
def test_the_operations_of_the_edits_lead_to_the_same_state(sequence) -> None:
    with connect("memory:") as repository:
        first = a_catalog(repository)
        head = repository.reference("main").hash
        staged = staged_by(sequence, first.get)
        after = committed(repository, staged)
        repository.assign_reference("main", head, expected_hash=repository.reference("main").hash)
        again = operations_of(content_edits(staged), first.get)
        assert committed(repository, again) == after
    assert sorted(map(str, content_edits(again))) == sorted(map(str, content_edits(staged)))


@settings(print_blob=True, deadline=None, max_examples=100)
@given(steps, st.lists(key, min_size=1, max_size=2, unique=True))
@example([("rename", KEYS[1], KEYS[2]), ("rename", KEYS[0], KEYS[1])], [KEYS[2]])
@example([("rename", KEYS[1], KEYS[2]), ("rename", KEYS[0], KEYS[1])], [KEYS[0]])
def test_keys_without_their_edits_keep_their_contents(sequence, names) -> None:
    with connect("memory:") as repository:
        first = a_catalog(repository)
        staged = staged_by(sequence, first.get)
        left, removed = without_keys(staged, names)
        after = committed(repository, left)
    for name in names:
        assert after.get(name) == first.get(name)
    for edit in removed:
        assert edit.old is None or after[edit.old] == edit.before
    remaining = [edit for edit in content_edits(staged) if edit not in removed]
    assert sorted(map(str, content_edits(left))) == sorted(map(str, remaining))


def test_a_deletion_that_made_room_is_removed_with_the_rename() -> None:
    first, second = KEYS[:2]
    with connect("memory:") as repository:
        before = a_catalog(repository)
        staged = staged_by([("delete", second), ("rename", first, second)], before.get)
        left, removed = without_keys(staged, [first])
        assert left == ()
        assert {edit.old for edit in removed} == {first, second}
        # A rename that made room is a change of its own.
        third = KEYS[2]
        staged = staged_by([("rename", second, third), ("rename", first, second)], before.get)
        left, removed = without_keys(staged, [first])
        assert {edit.old for edit in content_edits(left)} == {second}
        assert {edit.old for edit in removed} == {first}
