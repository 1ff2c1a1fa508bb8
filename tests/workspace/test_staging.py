"""Random sequences of staging verbs, compared with a catalog that applies each of them at
once."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nessie_cli import connect
from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import CommitMeta, ContentKey, Delete, IcebergTable, Put
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.staging import (
    delete,
    effective,
    put,
    rename,
    renames,
    replace,
    unmodified,
    without,
)

KEYS = [ContentKey((name,)) for name in "abcd"]
OLD = {KEYS[0], KEYS[1]}
IDS = {
    KEYS[0]: "00000000-0000-0000-0000-00000000000a",
    KEYS[1]: "00000000-0000-0000-0000-00000000000b",
}


def table(number, id_=None):
    return IcebergTable(id=id_, metadata_location=f"m{number}", snapshot_id=number)


START = {key: table(index, IDS[key]) for index, key in enumerate(KEYS[:2])}

key = st.sampled_from(KEYS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), key, st.integers(10, 19)),
        st.tuples(st.just("delete"), key),
        st.tuples(st.just("rename"), key, key),
        st.tuples(st.just("replace"), key, st.integers(20, 29)),
    ),
    max_size=12,
)


class Naive:
    """Applies each verb at once.

    A content is (identity, snapshot); identities of contents in the store are their ids.
    """

    def __init__(self):
        self.state = {key: (content.id, content.snapshot_id) for key, content in START.items()}
        self.fresh = 0

    def new(self):
        self.fresh += 1
        return f"fresh {self.fresh}"

    def put(self, key, number):
        self.state[key] = (self.state[key][0] if key in self.state else self.new(), number)

    def delete(self, key):
        if key not in self.state:
            raise ContentNotFound("", key)
        del self.state[key]

    def rename(self, old, new):
        if old not in self.state:
            raise ContentNotFound("", old)
        if new in self.state:
            raise AlreadyExists("", str(new))
        self.state[new] = self.state.pop(old)

    def replace(self, key, number):
        if key not in self.state:
            raise ContentNotFound("", key)
        self.state[key] = (self.new(), number)


def staged_step(staged, step, state):
    """Applies one step to staged operations."""
    verb, first, *rest = step
    if verb == "put":
        return put(staged, first, table(*rest), state)
    if verb == "delete":
        return delete(staged, first, state)
    if verb == "rename":
        return rename(staged, first, *rest, state)
    return replace(staged, first, table(*rest), state)


def try_both(naive, staged, step, state):
    """Applies one step on both sides; both must refuse it with the same error, or neither."""
    refusals = (ContentNotFound, AlreadyExists)
    try:
        getattr(naive, step[0])(*step[1:])
    except refusals as refused:
        with pytest.raises(type(refused)):
            staged_step(staged, step, state)
        return staged
    return staged_step(staged, step, state)


@settings(print_blob=True, deadline=None)
@given(steps)
def test_a_batch_has_the_same_result_as_its_steps(sequence):
    naive, staged = Naive(), ()
    for step in sequence:
        staged = try_both(naive, staged, step, START.get)
        for key in KEYS:
            content = effective(staged, key, START.get)
            assert (content.snapshot_id if content else None) == (
                naive.state[key][1] if key in naive.state else None
            )


def a_catalog(repository):
    """Writes the initial state; returns the contents with the ids of the repository."""
    repository.commit(
        "main",
        [Put(key, content.with_id(None)) for key, content in START.items()],
        CommitMeta("start"),
    )
    return repository.contents("main", KEYS)


def test_the_old_key_of_a_rename_can_be_reused_in_the_same_commit():
    with connect("memory:") as repository:
        contents = a_catalog(repository)
        staged = rename((), KEYS[0], KEYS[2], contents.get)
        staged = rename(staged, KEYS[1], KEYS[0], contents.get)
        repository.commit("main", [item.operation for item in staged], CommitMeta("hand on"))
        found = repository.contents("main", KEYS)
    assert found == {KEYS[2]: contents[KEYS[0]], KEYS[0]: contents[KEYS[1]]}


def test_the_old_key_of_a_rename_can_be_recreated_in_the_same_commit():
    with connect("memory:") as repository:
        contents = a_catalog(repository)
        staged = rename((), KEYS[0], KEYS[2], contents.get)
        staged = put(staged, KEYS[0], table(9), contents.get)
        added = repository.commit(
            "main", [item.operation for item in staged], CommitMeta("once more")
        ).added
        found = repository.contents("main", KEYS)
    assert found[KEYS[2]] == contents[KEYS[0]]
    assert found[KEYS[0]] == table(9, added[KEYS[0]])


A, B, C, _ = KEYS


@settings(print_blob=True, deadline=None, max_examples=150)
@given(steps)
@example([("rename", B, C), ("rename", A, B), ("delete", B), ("put", B, 10)])
@example([("rename", A, C), ("rename", B, A), ("rename", C, B)])
@example([("rename", A, C), ("rename", B, A), ("rename", C, B), ("replace", A, 20)])
@example([("replace", A, 20), ("rename", A, C), ("rename", B, A), ("replace", A, 21)])
def test_every_batch_can_be_committed_and_keeps_identities(sequence):
    naive, staged = Naive(), ()
    with connect("memory:") as repository:
        contents = a_catalog(repository)
        real = {content.id: IDS[key] for key, content in contents.items()}
        naive.state = {key: (IDS[key], content.snapshot_id) for key, content in contents.items()}
        for step in sequence:
            staged = try_both(naive, staged, step, contents.get)
        if staged:
            repository.commit("main", [item.operation for item in staged], CommitMeta("batch"))
        found = repository.contents("main", KEYS)
    assert {key: content.snapshot_id for key, content in found.items()} == {
        key: number for key, (_, number) in naive.state.items()
    }
    assert len({content.id for content in found.values()}) == len(found)
    for key, content in found.items():
        identity = naive.state[key][0]
        assert real.get(content.id, "fresh") == (
            identity if identity in IDS.values() else "fresh"
        ), (key, sequence)


def test_unstaging_one_half_of_a_rename_unstages_both():
    staged = rename((), KEYS[0], KEYS[2], START.get)

    assert renames(staged) == {KEYS[0]: KEYS[2]}
    assert without(staged, [KEYS[0]]) == without(staged, [KEYS[2]]) == ()


def test_unstaging_a_key_of_a_chain_unstages_the_whole_chain():
    staged = rename(rename((), KEYS[1], KEYS[2], START.get), KEYS[0], KEYS[1], START.get)

    assert set(renames(staged)) == {KEYS[0], KEYS[1]}
    for name in KEYS[:3]:
        assert without(staged, [name]) == (), name


def test_staging_again_replaces_the_operation_and_its_expected_content():
    staged = put((), KEYS[0], table(10), START.get)
    now = table(99, IDS[KEYS[0]])

    [again] = put(staged, KEYS[0], table(11), {KEYS[0]: now}.get, discard_staged=True)

    assert again == Staged(Put(KEYS[0], table(11, IDS[KEYS[0]]), now), now)


def test_a_key_cannot_be_both_changed_and_required_unchanged():
    with pytest.raises(InvalidInput, match="already changes it"):
        unmodified(delete((), KEYS[0], START.get), KEYS[0], START.get)

    [kept] = delete(unmodified((), KEYS[0], START.get), KEYS[0], START.get)
    assert kept.operation == Delete(KEYS[0])


def test_a_put_without_a_change_keeps_the_check_of_its_key():
    staged = unmodified((), KEYS[0], START.get)

    assert put(staged, KEYS[0], START[KEYS[0]], START.get) == staged


def test_a_put_cannot_change_the_type():
    from nessie_cli.model import UDF

    with pytest.raises(InvalidInput, match="of type iceberg-table, not udf"):
        put((), KEYS[0], UDF(), START.get)
