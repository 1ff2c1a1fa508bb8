"""Laws of the key tree: equal maps have equal roots, differences are exact, and shared
subtrees hide no difference."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import tree
from nessie_cli.kernel.edit import LEAF_TARGET, Chunker, build, edit
from nessie_cli.kernel.forms import RECORD_SIZE, Id, Kind, Node, decode_node, encode_node, object_id
from tests.kernel.heap import KINDS, Heap, State, key_set, record, state

SIZES = st.sampled_from([0, 1, 2, 3, 7, 20, 40, 41, 100, 333, 1000, 5000])
SETS = st.builds(key_set, st.sampled_from(KINDS), SIZES, st.integers(0, 2**32))
SMALL_KEYS = st.binary(min_size=1, max_size=4) | st.integers(0, 400).map(lambda n: b"k%03d" % n)
SMALL = st.dictionaries(SMALL_KEYS, st.integers(0, 3).map(record), max_size=120)
EDITS = st.dictionaries(SMALL_KEYS, st.none() | st.integers(0, 3).map(record), max_size=60)
laws = settings(deadline=None, max_examples=40, print_blob=True)
quick = settings(deadline=None, max_examples=150, print_blob=True)


def fresh(heap: Heap, wanted: State) -> Id:
    """Builds a map at once and stores it; returns its root."""
    objects = heap.objects()
    root = build(objects, sorted(wanted.items()))
    heap.keep(objects)
    return root


def edited(heap: Heap, root: Id, edits: dict[bytes, bytes | None]) -> Id:
    """Stores edits of a map; returns its root. The reader sees only stored objects."""
    objects = heap.objects()
    root = edit(objects, root, edits)
    heap.keep(objects)
    return root


def after(wanted: State, edits: dict[bytes, bytes | None]) -> State:
    merged = {**wanted, **edits}
    return {key: value for key, value in merged.items() if value is not None}


def content(heap: Heap, root: Id) -> State:
    return dict(tree.scan(heap.objects(), root))


def differences(a: State, b: State) -> list[tuple[bytes, bytes | None, bytes | None]]:
    return [
        (key, a.get(key), b.get(key))
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    ]


def nodes_below(heap: Heap, root: Id) -> Iterator[Node]:
    if root != tree.EMPTY:
        data = heap.data[root]
        assert object_id(Kind.NODE, data) == root
        node = decode_node(data)
        assert encode_node(node) == data
        yield node
        for child in node.children() if node.level else ():
            yield from nodes_below(heap, child)


def cut(items: Sequence[bytes], chance: random.Random) -> Iterator[list[bytes]]:
    """Divides a list into batches of random sizes."""
    position = 0
    while position < len(items):
        size = chance.choice([1, 1, 2, 10, 100, 2000])
        yield list(items[position : position + size])
        position += size


# -- one map, one root --


@laws
@given(SETS, st.integers(0, 2**32))
def test_edits_in_any_order_and_batching_give_the_root_of_a_fresh_build(
    keys: list[bytes], seed: int
) -> None:
    chance = random.Random(seed)
    wanted = state(keys)
    expected = fresh(Heap(), wanted)
    heap, root = Heap(), tree.EMPTY
    for batch in cut(keys[:1500], chance):
        root = edited(heap, root, {key: wanted[key] for key in batch})
    root = edited(heap, root, dict(wanted))
    assert root == expected
    assert content(heap, root) == wanted


@laws
@given(SETS, st.integers(0, 2**32))
def test_removing_added_keys_restores_the_root(keys: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    heap = Heap()
    wanted = state(keys)
    before = fresh(heap, wanted)
    extra = [key + chance.randbytes(2) for key in chance.sample(keys, min(len(keys), 300))] + [
        b"\x00",
        b"\xff" * 40,
    ]
    more = state([key for key in extra if key not in wanted], first=10_000)
    root = edited(heap, before, dict(more))
    assert root == fresh(Heap(), wanted | more)
    for batch in cut(list(more), chance):
        root = edited(heap, root, dict.fromkeys(batch))
    assert root == before


@quick
@given(SMALL, st.lists(EDITS, max_size=6))
def test_any_edits_give_the_root_of_a_fresh_build(
    wanted: State, edits: list[dict[bytes, bytes | None]]
) -> None:
    heap = Heap()
    root = fresh(heap, wanted)
    for batch in edits:
        root = edited(heap, root, batch)
        wanted = after(wanted, batch)
        assert root == fresh(Heap(), wanted)


@laws
@given(SETS, st.integers(0, 2**32))
def test_values_move_no_boundaries(keys: list[bytes], seed: int) -> None:
    heap = Heap()
    root = fresh(heap, state(keys))
    changed = state(keys, first=seed + 1)
    other = edited(heap, root, dict(changed))
    assert [node.keys for node in nodes_below(heap, other)] == [
        node.keys for node in nodes_below(heap, root)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "where",
    ["front", "back", "middle", "front and back", "wipe", "all but one", "append", "prepend"],
)
def test_edits_at_the_ends_and_whole_ranges(kind: str, where: str) -> None:
    keys = sorted(key_set(kind, 3000, 1))
    wanted = state(keys)
    heap = Heap()
    root = fresh(heap, wanted)
    third = len(keys) // 3
    choices: dict[str, dict[bytes, bytes | None]] = {
        "front": dict.fromkeys(keys[:third]),
        "back": dict.fromkeys(keys[-third:]),
        "middle": dict.fromkeys(keys[third:-third]),
        "front and back": {keys[0]: None, keys[-1]: None},
        "wipe": dict.fromkeys(keys),
        "all but one": dict.fromkeys(keys[1:]),
        "append": {keys[-1] + b"%d" % n: record(n) for n in range(500)},
        "prepend": {b"\x00" + bytes([n % 256, n // 256]): record(n) for n in range(500)},
    }
    edits = choices[where]
    assert edited(heap, root, edits) == fresh(Heap(), after(wanted, edits))


def test_the_empty_map_has_one_root_and_is_never_stored() -> None:
    heap = Heap()
    assert fresh(heap, {}) == tree.EMPTY
    root = fresh(heap, state([b"a", b"b"]))
    assert edited(heap, root, {b"a": None, b"b": None}) == tree.EMPTY
    assert edited(heap, tree.EMPTY, {}) == tree.EMPTY
    assert edited(heap, tree.EMPTY, {b"a": None}) == tree.EMPTY
    assert tree.EMPTY not in heap.data
    objects = heap.objects()
    assert tree.count(objects, tree.EMPTY) == 0
    assert tree.get(objects, tree.EMPTY, [b"a"]) == {}
    assert list(tree.scan(objects, tree.EMPTY)) == []
    assert heap.reads == 0


@laws
@given(SETS)
def test_edits_that_change_nothing_keep_the_root_and_write_nothing(keys: list[bytes]) -> None:
    wanted = state(keys)
    heap = Heap()
    root = fresh(heap, wanted)
    objects = heap.objects()
    assert edit(objects, root, {}) == root
    assert edit(objects, root, {key: wanted[key] for key in keys[:50]}) == root
    assert (
        edit(objects, root, {key + b"!": None for key in keys[:50] if key + b"!" not in wanted})
        == root
    )
    heap.keep(objects)
    assert heap.writes == 0


@laws
@given(SETS, SETS, st.integers(0, 2**32))
def test_a_stored_tree_is_complete_and_minimal(
    keys: list[bytes], more: list[bytes], seed: int
) -> None:
    heap = Heap()
    roots = [fresh(heap, state(keys))]
    chance = random.Random(seed)
    gone = chance.sample(keys, len(keys) // 3)
    roots.append(edited(heap, roots[0], {**state(more[:700], first=7), **dict.fromkeys(gone)}))
    reached: set[Id] = set()
    for root in roots:
        nodes = list(nodes_below(heap, root))
        reached.update(object_id(Kind.NODE, encode_node(node)) for node in nodes)
        for node in nodes:
            assert node.keys == tuple(sorted(set(node.keys)))
            assert node.keys
            assert node.level == 0 or len(node.keys) > 1 or node.keys[-1] == nodes[0].keys[-1]
        assert tree.count(heap.objects(), root) == sum(
            len(node.keys) for node in nodes if node.level == 0
        )
        if nodes:
            assert nodes[0].level == 0 or len(nodes[0].keys) > 1
    assert reached == set(heap.data)


# -- reading --


@laws
@given(SETS, st.integers(0, 2**32))
def test_get_returns_the_last_put_of_each_key(keys: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    wanted = state(keys)
    heap = Heap()
    root = fresh(heap, wanted)
    later = {key: record(99_999) for key in keys[::7]}
    root = edited(heap, root, dict(later))
    wanted |= later
    absent = [key + b"?" for key in keys[:40] if key + b"?" not in wanted] + [b"\xff" * 9, b"\x00"]
    asked = chance.sample(keys, min(len(keys), 400)) + absent
    assert tree.get(heap.objects(), root, asked) == {
        key: wanted[key] for key in asked if key in wanted
    }
    assert tree.get(heap.objects(), root, []) == {}


@laws
@given(SETS, st.integers(0, 2**32))
@example(key_set("sequential", 5000, 0), 0)
def test_scans_of_any_range_are_exact(keys: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    wanted = state(keys)
    root = fresh(heap := Heap(), wanted)
    marks = [
        *chance.sample(keys, min(len(keys), 6)),
        b"",
        b"\x00",
        b"\xff" * 8,
        *(key + b"\x01" for key in keys[:2]),
    ]
    ordered = sorted(wanted.items())
    assert list(tree.scan(heap.objects(), root)) == ordered
    objects = heap.objects()
    for start in marks:
        for stop in [*marks, None]:
            last = len(ordered) if stop is None else bisect_left(ordered, (stop,))
            assert (
                list(tree.scan(objects, root, start, stop))
                == ordered[bisect_left(ordered, (start,)) : last]
            )


@laws
@given(SETS)
def test_the_count_is_the_number_of_keys(keys: list[bytes]) -> None:
    heap = Heap()
    root = fresh(heap, state(keys))
    assert tree.count(heap.objects(), root) == len(keys)
    assert heap.reads <= 1


# -- differences --


@laws
@given(SETS, st.integers(0, 2**32))
def test_a_diff_is_exact_and_applying_it_gives_the_other_map(keys: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    a = state(keys)
    heap = Heap()
    touched = chance.sample(keys, min(len(keys), chance.choice([0, 1, 3, 50, 2000])))
    b = after(a, {key: chance.choice([None, record(50_000)]) for key in touched})
    b |= state([key + b"+" for key in touched[:20]], first=60_000)
    root_a, root_b = fresh(heap, a), fresh(heap, b)
    found = list(tree.diff(heap.objects(), root_a, root_b))
    assert found == differences(a, b)
    assert list(tree.diff(heap.objects(), root_b, root_a)) == differences(b, a)
    assert edited(heap, root_a, {key: new for key, _, new in found}) == root_b
    assert edited(heap, root_b, {key: old for key, old, _ in found}) == root_a


@quick
@given(SMALL, SMALL, SMALL_KEYS, st.none() | SMALL_KEYS)
def test_a_diff_of_a_range_is_that_part_of_the_diff(
    a: State, b: State, start: bytes, stop: bytes | None
) -> None:
    heap = Heap()
    root_a, root_b = fresh(heap, a), fresh(heap, b)
    expected = [d for d in differences(a, b) if d[0] >= start and (stop is None or d[0] < stop)]
    assert list(tree.diff(heap.objects(), root_a, root_b, start, stop)) == expected
    assert list(tree.diff(heap.objects(), root_a, root_b)) == differences(a, b)


@pytest.mark.slow
@laws
@given(SETS, SETS, st.integers(0, 2**32))
def test_a_range_of_a_large_diff_is_exact(keys: list[bytes], more: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    a, b = state(keys), state(keys[len(keys) // 2 :] + [k for k in more if k not in set(keys)])
    heap = Heap()
    root_a, root_b = fresh(heap, a), fresh(heap, b)
    both = sorted({*keys, *more})
    everything = differences(a, b)
    for _ in range(3):
        start, stop = sorted(chance.choices(both, k=2)) if both else (b"", b"a")
        expected = [d for d in everything if start <= d[0] < stop]
        assert list(tree.diff(heap.objects(), root_a, root_b, start, stop)) == expected


@pytest.mark.parametrize(
    "sizes", [(0, 0), (0, 1), (1, 0), (0, 3000), (3000, 0), (1, 3000), (30, 3000), (3000, 2999)]
)
def test_diffs_of_trees_of_different_heights(sizes: tuple[int, int]) -> None:
    keys = sorted(key_set("random", 3000, 5))
    a, b = state(keys[: sizes[0]]), state(keys[: sizes[1]], first=1)
    heap = Heap()
    assert list(tree.diff(heap.objects(), fresh(heap, a), fresh(heap, b))) == differences(a, b)


def test_a_single_difference_is_found_wherever_it_is() -> None:
    keys = sorted(key_set("random", 3000, 9))
    wanted = state(keys)
    heap = Heap()
    root = fresh(heap, wanted)
    for position in range(0, 3000, 37):
        other = edited(heap, root, {keys[position]: record(123_456)})
        assert list(tree.diff(heap.objects(), root, other)) == [
            (keys[position], wanted[keys[position]], record(123_456))
        ]
        without = edited(heap, root, {keys[position]: None})
        assert list(tree.diff(heap.objects(), root, without)) == [
            (keys[position], wanted[keys[position]], None)
        ]


def test_a_subtree_that_moved_hides_nothing() -> None:
    # The middle stays while everything before it is removed, so shared leaves have other positions.
    keys = sorted(key_set("sequential", 4000, 0))
    a, b = state(keys), state(keys)
    for key in keys[:1500]:
        del b[key]
    for key in keys[3000::3]:
        b[key] = record(77)
    heap = Heap()
    assert list(tree.diff(heap.objects(), fresh(heap, a), fresh(heap, b))) == differences(a, b)


# -- three ways --


@quick
@given(SMALL, EDITS, EDITS)
def test_three_way_diff_returns_every_change_of_the_source(
    base: State, ours: dict[bytes, bytes | None], theirs: dict[bytes, bytes | None]
) -> None:
    heap = Heap()
    target, source = after(base, ours), after(base, theirs)
    roots = [fresh(heap, s) for s in (base, target, source)]
    found = list(tree.three_way(heap.objects(), *roots))
    assert found == [
        (key, before, target.get(key), now) for key, before, now in differences(base, source)
    ]
    assert list(tree.three_way(heap.objects(), roots[0], roots[1], roots[0])) == []
    forward = tree.three_way(heap.objects(), roots[0], roots[0], roots[2])
    assert edited(heap, roots[0], {key: now for key, _, _, now in forward}) == roots[2]


@laws
@given(SETS, st.integers(0, 2**32))
def test_disjoint_changes_merge_to_the_same_root_from_both_sides(
    keys: list[bytes], seed: int
) -> None:
    chance = random.Random(seed)
    base = state(keys)
    some = chance.sample(keys, min(len(keys), 200))
    ours: dict[bytes, bytes | None] = {key: record(1_000_000) for key in some[::2]}
    theirs: dict[bytes, bytes | None] = {
        key: chance.choice([None, record(2_000_000)]) for key in some[1::2]
    }
    heap = Heap()
    root, target, source = (fresh(heap, s) for s in (base, after(base, ours), after(base, theirs)))
    one = edited(
        heap,
        target,
        {k: now for k, _, _, now in tree.three_way(heap.objects(), root, target, source)},
    )
    two = edited(
        heap,
        source,
        {k: now for k, _, _, now in tree.three_way(heap.objects(), root, source, target)},
    )
    assert one == two == fresh(Heap(), after(after(base, ours), theirs))


# -- shape --


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_stay_near_their_target(kind: str) -> None:
    heap = Heap()
    root = fresh(heap, state(key_set(kind, 5000, 3)))
    leaves = [
        sum(len(k) + RECORD_SIZE + 2 for k in node.keys)
        for node in nodes_below(heap, root)
        if node.level == 0
    ]
    largest_key = max(len(k) for node in nodes_below(heap, root) for k in node.keys)
    assert max(leaves) <= 2.5 * LEAF_TARGET + largest_key
    if len(leaves) > 20 and largest_key < 100:
        assert 0.6 * LEAF_TARGET < sum(leaves) / len(leaves) < 1.2 * LEAF_TARGET


def test_keys_chosen_to_avoid_every_boundary_cannot_make_a_large_node() -> None:
    chosen: list[bytes] = []
    chance = random.Random(0)
    for n in range(400):
        for _ in range(200):
            candidate = b"%06d-%08x" % (n, chance.getrandbits(32))
            chunker = Chunker(0)
            if not any(chunker.add(key, record(0)) for key in [*chosen, candidate]):
                chosen.append(candidate)
                break
        else:
            break
    assert sum(len(key) + RECORD_SIZE + 2 for key in chosen) < 2.5 * LEAF_TARGET


def test_a_missing_node_is_reported_with_its_id() -> None:
    heap = Heap()
    root = fresh(heap, state(key_set("sequential", 1000, 0)))
    lost = decode_node(heap.data[root]).child(1)
    del heap.data[lost]
    with pytest.raises(DamagedObject) as refused:
        list(tree.scan(heap.objects(), root))
    assert refused.value.object_id == lost.hex()
