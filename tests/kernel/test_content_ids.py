"""Commits add no second key for a content id: random batches on old and new expected states."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import Stamp, draft_commit
from nessie_cli.kernel.committing import OperationBatch, apply_batch, parse_content_id
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of, encode_key, format_content_id
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    IcebergTable,
    Operation,
    Put,
    RestoredFrom,
    Unchanged,
)
from tests.kernel.heap import Heap

KEYS = [ContentKey((name,)) for name in "abcd"]
IDS = [bytes([number]) * 16 for number in range(1, 5)]

State = dict[ContentKey, tuple[int, int]]
"""The index of the content id, and the snapshot."""

states = st.dictionaries(
    st.sampled_from(KEYS), st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=4
)
sound_states = states.filter(
    lambda state: len({number for number, _ in state.values()}) == len(state)
)


def content(number: int | None, snapshot: int) -> IcebergTable:
    id_ = None if number is None else format_content_id(IDS[number])
    return IcebergTable(id=id_, metadata_location="m", snapshot_id=snapshot)


contents = st.builds(content, st.none() | st.integers(0, 3), st.integers(0, 2))
keys = st.sampled_from(KEYS)
operations = st.lists(
    st.one_of(
        st.builds(Put, keys, contents, st.none() | contents),
        st.builds(Delete, keys),
        st.builds(Unchanged, keys),
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def moves(draw: st.DrawFn) -> tuple[State, State, list[Operation]]:
    """Draws an expected state, HEAD, and a batch that moves contents of the expected state.

    Most random batches are refused; most of these are not.
    """
    expected: State = draw(states)
    head: State = draw(st.just(expected) | states)
    places = draw(st.permutations(KEYS))
    moved = dict(zip(expected, places, strict=False))
    named = draw(st.sampled_from([expected, head]))
    batch: list[Operation] = [Delete(key) for key in expected if key not in moved.values()]
    for key, place in moved.items():
        seen = named.get(place)
        batch.append(
            Put(
                place,
                content(expected[key][0], draw(st.integers(0, 2))),
                content(*seen) if seen else None,
            )
        )
    return expected, head, draw(st.permutations(batch)) or [Unchanged(KEYS[0])]


def root_of(objects: Objects, state: State) -> Id:
    edits = {
        encode_key(key): objects.add_content(content(None, snapshot), IDS[number])
        for key, (number, snapshot) in state.items()
    }
    return edit(objects, tree.EMPTY, edits)


def commit_of(objects: Objects, root: Id) -> RestoredFrom:
    """Returns a place in a commit with this state; its key is A."""
    id_ = draft_commit(
        objects, [NO_COMMIT], root, {}, meta=CommitMeta("earlier"), stamp=Stamp("ann", 0)
    )
    return RestoredFrom(id_.hex(), A)


def holders(objects: Objects, root: Id) -> Counter[bytes]:
    """Returns the number of keys of each content id."""
    return Counter(content_id_of(record) for _, record in tree.scan(objects, root))


def new_id(key: bytes) -> bytes:
    return b"new" + key * 13


def committed(objects: Objects, expected: Id, head: Id, batch: list[Operation]) -> Id | None:
    """Returns the new state, or None if the batch is refused."""
    try:
        applied = apply_batch(objects, OperationBatch(objects, batch), expected, head, new_id)
    except InvalidInput:
        return None
    return None if applied.conflicts else applied.root


def check_ids(expected: State, head: State, batch: list[Operation]) -> None:
    """Asserts that no content id is under more keys than before, unless it was under none."""
    objects = Heap().objects()
    roots = root_of(objects, expected), root_of(objects, head)
    after = committed(objects, *roots, batch)
    if after is None:
        return
    before = holders(objects, roots[1])
    for id_, number in holders(objects, after).items():
        assert number <= max(1, before[id_])


A, B, C, D = KEYS


@settings(max_examples=700, deadline=None, print_blob=True)
@given(states, states, operations)
@example({A: (0, 0)}, {A: (1, 0), B: (0, 0)}, [Put(A, content(0, 1), content(1, 0))])
@example({A: (0, 0)}, {A: (1, 0), B: (0, 0)}, [Put(A, content(0, 1), content(None, 0))])
@example({A: (0, 0), B: (1, 0)}, {A: (0, 0), B: (1, 0)}, [Put(A, content(1, 0), content(0, 0))])
@example({A: (0, 0)}, {A: (0, 0)}, [Put(A, content(3, 0), content(0, 0))])
def test_no_batch_adds_a_second_key_for_an_id(
    expected: State, head: State, batch: list[Operation]
) -> None:
    for state in (expected, head):
        check_ids(expected, state, batch)


@settings(max_examples=700, deadline=None, print_blob=True)
@given(moves())
def test_no_move_adds_a_second_key_for_an_id(
    drawn: tuple[State, State, list[Operation]],
) -> None:
    check_ids(*drawn)


@st.composite
def restorations(draw: st.DrawFn) -> tuple[State, State, State, list[tuple[Operation, ContentKey]]]:
    """Draws an earlier and an expected state, HEAD, and operations with the keys of origins."""
    earlier, expected = draw(sound_states), draw(sound_states)
    head = draw(st.just(expected) | sound_states)
    batch: list[tuple[Operation, ContentKey]] = []
    for key, (number, _) in earlier.items():
        place = draw(keys)
        if place in expected and draw(st.booleans()):
            batch.append((Delete(place), key))
        batch.append((Put(place, content(number, draw(st.integers(0, 2)))), key))
    batch += [(operation, A) for operation in draw(st.just([]) | operations)]
    return earlier, expected, head, batch or [(Unchanged(A), A)]


@settings(max_examples=1500, deadline=None, print_blob=True)
@given(restorations())
def test_no_restoration_adds_a_second_key_for_an_id(
    drawn: tuple[State, State, State, list[tuple[Operation, ContentKey]]],
) -> None:
    """Accepted are exactly those whose contents have no key at HEAD, among batches of one Put."""
    earlier, expected, head, batch = drawn
    objects = Heap().objects()
    roots = [root_of(objects, state) for state in (expected, head)]
    commit = commit_of(objects, root_of(objects, earlier))
    restored: list[Operation] = [
        structs.replace(operation, restored_from=structs.replace(commit, key=key))
        if isinstance(operation, Put) and operation.content.id
        else operation
        for operation, key in batch
    ]
    after = committed(objects, *roots, restored)
    if after is not None:
        assert max(holders(objects, after).values(), default=1) == 1
    put = restored[0]
    if len(restored) == 1 and isinstance(put, Put) and put.content.id and put.key not in expected:
        ids = {format_content_id(IDS[number]) for number, _ in head.values()}
        has_origin = earlier.get(batch[0][1], (None,))[0] == IDS.index(content_id_of_text(put))
        is_free = put.key not in head and put.content.id not in ids
        assert (after is not None) == (has_origin and is_free)


def content_id_of_text(put: Put) -> bytes:
    return parse_content_id(put.content.id or "")


def test_a_restored_content_that_has_another_key_is_a_conflict_with_that_key() -> None:
    objects = Heap().objects()
    place = commit_of(objects, root_of(objects, {A: (0, 0), B: (1, 0)}))
    gone = root_of(objects, {B: (1, 0)})
    put = Put(A, content(0, 0), restored_from=place)
    assert committed(objects, gone, gone, [put]) == root_of(objects, {A: (0, 0), B: (1, 0)})
    for head in ({C: (0, 0)}, {A: (0, 0)}, {C: (0, 1), A: (2, 0)}):
        batch = OperationBatch(objects, [structs.replace(put, key=D)])
        applied = apply_batch(objects, batch, gone, root_of(objects, head), new_id)
        (key,) = (key for key, (number, _) in head.items() if number == 0)
        assert [(c.type, c.key, c.other_key) for c in applied.conflicts] == [
            ("KEY_EXISTS", encode_key(D), encode_key(key))
        ]


@pytest.mark.parametrize("expected", [{}, {D: (1, 0)}, {D: (2, 0)}], ids=str)
@pytest.mark.parametrize("head", [{}, {D: (1, 0)}, {D: (2, 0)}], ids=str)
@pytest.mark.parametrize("is_named", [False, True])
def test_another_content_at_the_key_of_a_restored_one_does_not_hide_its_other_key(
    expected: State, head: State, is_named: bool
) -> None:
    """One conflict names both: the content that has the key, and the key of the restored one."""
    if is_named and not expected:
        return
    objects = Heap().objects()
    place = commit_of(objects, root_of(objects, {A: (0, 0)}))
    seen = content(*expected[D]) if is_named else None
    batch: list[Operation] = [Put(D, content(0, 0), seen, restored_from=place)]
    if expected and not is_named:
        batch.insert(0, Delete(D))
    now = root_of(objects, {**head, C: (0, 1)})
    applied = apply_batch(
        objects, OperationBatch(objects, batch), root_of(objects, expected), now, new_id
    )
    (conflict,) = applied.conflicts
    assert (conflict.type, conflict.key, conflict.other_key) == (
        "KEY_EXISTS",
        encode_key(D),
        encode_key(C),
    )
    for record, state in ((conflict.expected, expected), (conflict.actual, head)):
        assert (record and content_id_of(record)) == (IDS[state[D][0]] if state else None)
    assert content_id_of(conflict.proposed or b"") == IDS[0]


def test_a_restored_content_replaces_another_one() -> None:
    objects = Heap().objects()
    place = commit_of(objects, root_of(objects, {A: (0, 0)}))
    now = root_of(objects, {A: (1, 0), B: (2, 0)})
    batch: list[Operation] = [Delete(A), Put(A, content(0, 1), restored_from=place)]
    assert committed(objects, now, now, batch) == root_of(objects, {A: (0, 1), B: (2, 0)})
    assert committed(objects, now, root_of(objects, {A: (3, 0)}), batch) is None


@pytest.mark.parametrize("number", [1, 3], ids=["of another key", "of no key"])
def test_a_content_is_restored_only_from_where_it_was(number: int) -> None:
    objects = Heap().objects()
    place = commit_of(objects, root_of(objects, {A: (0, 0), B: (1, 0)}))
    for put, text in (
        (Put(C, content(number, 0), restored_from=place), "no content of this type with content"),
        (Put(C, content(None, 0), restored_from=place), "must have a content ID"),
        (Put(C, content(0, 0), restored_from=RestoredFrom("12", A)), "restored from '12', not a"),
        (Put(C, content(0, 0), restored_from=RestoredFrom("ab" * 32, A)), "could not find commit"),
    ):
        with pytest.raises(InvalidInput, match=text):
            apply_batch(objects, OperationBatch(objects, [put]), tree.EMPTY, tree.EMPTY, new_id)


@settings(max_examples=300, deadline=None, print_blob=True)
@given(sound_states, st.permutations(KEYS))
def test_every_permutation_of_contents_is_committed(state: State, places: list[ContentKey]) -> None:
    """A Put names the content that it displaces, as staged renames do."""
    moved = dict(zip(KEYS, places, strict=True))
    after = {moved[key]: value for key, value in state.items()}
    batch: list[Operation] = [
        Put(key, content(*value), content(*state[key]) if key in state else None)
        for key, value in after.items()
    ] + [Delete(key) for key in state if key not in after]
    if not batch:
        return
    objects = Heap().objects()
    root = root_of(objects, state)
    assert committed(objects, root, root, batch) == root_of(objects, after)


@pytest.mark.parametrize("seen", [None, content(0, 0), content(None, 0)], ids=str)
@pytest.mark.parametrize("number", [1, 3], ids=["of another key", "of no key"])
def test_an_id_that_leaves_no_key_is_refused_whatever_the_batch_expects(
    seen: Content | None, number: int
) -> None:
    objects = Heap().objects()
    root = root_of(objects, {A: (0, 0), B: (1, 0)})
    batch = OperationBatch(objects, [Put(A, content(number, 1), seen)])
    with pytest.raises(InvalidInput) as refused:
        apply_batch(objects, batch, root, root, new_id)
    assert refused.value.message == (
        f"Key 'a' already exists with content ID {format_content_id(IDS[0])}, which is different"
        f" from the content ID {format_content_id(IDS[number])} in the operation"
    )


def test_an_id_that_arrived_elsewhere_at_head_conflicts() -> None:
    objects = Heap().objects()
    expected = root_of(objects, {A: (0, 0)})
    head = root_of(objects, {A: (1, 0), B: (0, 0)})
    batch = OperationBatch(objects, [Put(A, content(0, 1), content(1, 0))])
    [conflict] = apply_batch(objects, batch, expected, head, new_id).conflicts
    assert (conflict.type, conflict.key) == ("CONTENT_ID_DIFFERS", encode_key(A))
    assert content_id_of(conflict.expected or b"") == IDS[0]
    assert content_id_of(conflict.actual or b"") == IDS[1]


def test_a_double_can_be_moved_and_changed_but_not_added_to() -> None:
    objects = Heap().objects()
    state: State = {A: (0, 0), B: (0, 1)}
    root = root_of(objects, state)
    for batch, number in (
        ([Put(A, content(0, 2))], 2),
        ([Delete(A)], 1),
        ([Delete(A), Put(C, content(0, 2))], 2),
        ([Delete(A), Put(A, content(None, 0))], 1),
    ):
        after = committed(objects, root, root, batch)
        assert after is not None
        assert holders(objects, after)[IDS[0]] == number
    assert committed(objects, root, root, [Put(C, content(0, 2))]) is None


def test_a_moved_content_keeps_its_type_on_an_occupied_key() -> None:
    from nessie_cli.model import UDF

    objects = Heap().objects()
    root = root_of(objects, {A: (0, 0), B: (1, 0)})
    batch = [Delete(A), Put(B, UDF(id=format_content_id(IDS[0])), content(1, 0))]
    assert committed(objects, root, root, batch) is None
