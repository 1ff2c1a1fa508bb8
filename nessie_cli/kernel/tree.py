"""The key tree: the state of a commit as a sorted map of content-addressed nodes.

The same map has the same root, whatever the order of edits (see edit.py). So equal subtrees have
equal ids, commits share them, and diff and merge skip them. All functions read one level at a time,
in one round trip. Costs are in nodes, for N keys, k requested or edited keys, d keys that differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from nessie_cli.kernel.forms import CHILD_SIZE, RECORD_SIZE, Id, Node
from nessie_cli.kernel.objects import Objects

EMPTY: Id = bytes.fromhex("0de271bcf43728c88b40247da82467993e3c757d45794891b82992df81ea196b")
"""The root of the empty map: the id of a leaf without keys. It is never stored."""

_NO_KEYS = Node(0, (), b"")
READ_AHEAD = 64
"""The most nodes that a scan reads in one round trip."""

Item = tuple[bytes, bytes]


def root_node(objects: Objects, root: Id) -> Node:
    """Returns the root node, also that of the empty map."""
    return _NO_KEYS if root == EMPTY else objects.node(root)


def count(objects: Objects, root: Id) -> int:
    """Returns the number of keys in the map. Cost: one node."""
    return root_node(objects, root).count()


def get(objects: Objects, root: Id, keys: Iterable[bytes]) -> dict[bytes, bytes]:
    """Returns the records of those keys that exist. O(k log N) nodes, one round trip per level."""
    sorted_keys = sorted(keys)
    if len(sorted_keys) == 1:
        return _get_one(objects, root, sorted_keys[0])
    records: dict[bytes, bytes] = {}
    level = [(root_node(objects, root), sorted_keys)] if sorted_keys else []
    while level:
        below: list[tuple[Id, list[bytes]]] = []
        for node, asked in level:
            if node.level:
                below.extend((node.child(i), part) for i, part in _by_child(node, asked))
                continue
            keys_here = node.keys
            for key in asked:
                index = bisect_left(keys_here, key)
                if index < len(keys_here) and keys_here[index] == key:
                    records[key] = node.slice(index)
        nodes = objects.nodes([child for child, _ in below]) if below else []
        level = [(node, asked) for node, (_, asked) in zip(nodes, below, strict=True)]
    return records


def path_to(objects: Objects, root: Id, key: bytes) -> list[tuple[Node, int]] | None:
    """Returns the nodes from the root down to the leaf of a key, each with the key's index.

    Returns None if the map does not contain the key.
    """
    node = root_node(objects, root)
    path: list[tuple[Node, int]] = []
    while True:
        keys = node.keys
        index = bisect_left(keys, key)
        if index == len(keys):
            return None
        path.append((node, index))
        if not node.level:
            return path if keys[index] == key else None
        node = objects.node(node.child(index))


def _get_one(objects: Objects, root: Id, key: bytes) -> dict[bytes, bytes]:
    path = path_to(objects, root, key)
    if path is None:
        return {}
    leaf, index = path[-1]
    return {key: leaf.slice(index)}


def _by_child(node: Node, keys: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Groups sorted keys by the index of the child that may contain them.

    Keys beyond the last child are left out.
    """
    position = 0
    while position < len(keys):
        index = bisect_left(node.keys, keys[position])
        if index == len(node.keys):
            return
        end = position + 1
        while end < len(keys) and keys[end] <= node.keys[index]:
            end += 1
        yield index, list(keys[position:end])
        position = end


def scan(
    objects: Objects, root: Id, start: bytes = b"", stop: bytes | None = None
) -> Iterator[Item]:
    """Yields keys and records from `start` to before `stop`, ascending, in constant memory.

    O(log N + consumed keys).
    """
    for node in _leaves(objects, [root] if root != EMPTY else [], start, stop, _ReadAhead()):
        keys, payload = node.keys, node.payload
        first = bisect_left(keys, start) if keys[0] < start else 0
        last = bisect_left(keys, stop) if stop is not None and keys[-1] >= stop else len(keys)
        for index in range(first, last):
            yield keys[index], payload[index * RECORD_SIZE : (index + 1) * RECORD_SIZE]


class _ReadAhead:
    """Batch sizes of a scan: a short scan reads few nodes, a long one soon reads large batches."""

    def __init__(self) -> None:
        self._size = 1

    def batches(self, ids: Sequence[Id]) -> Iterator[Sequence[Id]]:
        first = 0
        while first < len(ids):
            size = self._size
            self._size = min(2 * size, READ_AHEAD)
            yield ids[first : first + size]
            first += size


def _leaves(
    objects: Objects, ids: Sequence[Id], start: bytes, stop: bytes | None, ahead: _ReadAhead
) -> Iterator[Node]:
    for batch in ahead.batches(ids):
        for node in objects.nodes(batch):
            if node.level:
                yield from _leaves(objects, _children(node, start, stop), start, stop, ahead)
            else:
                yield node


def _children(node: Node, start: bytes, stop: bytes | None) -> list[Id]:
    """Returns the children that may contain keys of the half-open range."""
    first, last = child_range(node, start, stop)
    return node.children()[first:last]


def child_range(node: Node, start: bytes, stop: bytes | None) -> tuple[int, int]:
    """Returns the half-open range of indexes of children that may contain keys of a range."""
    last = len(node.keys) if stop is None else bisect_left(node.keys, stop) + 1
    return bisect_left(node.keys, start), last


Change = tuple[bytes, bytes | None, bytes | None]
"""A key and its records before and after; None where it is absent."""


def diff(
    objects: Objects, a: Id, b: Id, start: bytes = b"", stop: bytes | None = None
) -> Iterator[Change]:
    """Yields keys whose records differ, with both records (None: absent), ascending.

    O(d log N): equal subtrees are not read.
    """
    left, right = _unshared_leaves(objects, a, b, start, stop)
    if len(left) == len(right):
        done = 0
        for batch in _ReadAhead().batches(left):
            ours, theirs = objects.nodes(batch), objects.nodes(right[done : done + len(batch)])
            if any(mine.keys != other.keys for mine, other in zip(ours, theirs, strict=True)):
                left, right = left[done:], right[done:]
                break
            yield from _pairwise(ours, theirs, start, stop)
            done += len(batch)
        else:
            return
    yield from _join(_items(objects, left, start, stop), _items(objects, right, start, stop))


def new_leaves(objects: Objects, earlier: Iterable[Id], root: Id) -> Iterator[Node]:
    """Yields the leaves of a map that one of the earlier maps does not have, each once.

    O(leaves of the map), and O(d log N) inner nodes for each earlier map.
    """
    leaves = dict.fromkeys(
        leaf for each in earlier for leaf in _unshared_leaves(objects, each, root, b"", None)[1]
    )
    for batch in _ReadAhead().batches(list(leaves)):
        yield from objects.nodes(batch)


def _pairwise(
    ours: Sequence[Node], theirs: Sequence[Node], start: bytes, stop: bytes | None
) -> Iterator[Change]:
    """The common case: leaves with the same keys, in which some records were replaced."""
    for mine, other in zip(ours, theirs, strict=True):
        for index in _differing(mine.payload, other.payload, RECORD_SIZE):
            key = mine.keys[index]
            if key >= start and (stop is None or key < stop):
                yield key, mine.slice(index), other.slice(index)


def _join(ours: Iterator[Item], theirs: Iterator[Item]) -> Iterator[Change]:
    mine, other = next(ours, None), next(theirs, None)
    while mine or other:
        if other is None or (mine is not None and mine[0] < other[0]):
            assert mine is not None
            yield mine[0], mine[1], None
            mine = next(ours, None)
        elif mine is None or other[0] < mine[0]:
            yield other[0], None, other[1]
            other = next(theirs, None)
        else:
            if mine[1] != other[1]:
                yield mine[0], mine[1], other[1]
            mine, other = next(ours, None), next(theirs, None)


def _items(
    objects: Objects, leaves: Sequence[Id], start: bytes, stop: bytes | None
) -> Iterator[Item]:
    for batch in _ReadAhead().batches(leaves):
        for node in objects.nodes(batch):
            first = bisect_left(node.keys, start)
            last = len(node.keys) if stop is None else bisect_left(node.keys, stop)
            for index in range(first, last):
                yield node.keys[index], node.slice(index)


def _differing(ours: bytes, theirs: bytes, size: int) -> list[int]:
    """Returns the indexes of slices that differ between two payloads, by comparing halves."""
    indexes: list[int] = []
    waiting = [(0, len(ours) // size)]
    while waiting:
        first, last = waiting.pop()
        if ours[first * size : last * size] == theirs[first * size : last * size]:
            continue
        if last - first == 1:
            indexes.append(first)
            continue
        middle = (first + last) // 2
        # The lower half comes first, so the indexes ascend.
        waiting += [(middle, last), (first, middle)]
    return indexes


def _unshared_leaves(
    objects: Objects, a: Id, b: Id, start: bytes, stop: bytes | None
) -> tuple[list[Id], list[Id]]:
    """Returns the leaves of each map that the other does not have, found level by level.

    An id that occurs on both sides stands for the same keys and records: it contains no difference.
    """
    left, right = ([] if root == EMPTY else [root] for root in (a, b))
    while True:
        shared = set(left).intersection(right)
        if shared:
            left = [i for i in left if i not in shared]
            right = [i for i in right if i not in shared]
        ours, theirs = objects.nodes(left[:1]), objects.nodes(right[:1])
        top = max([node.level for node in (*ours, *theirs)], default=0)
        if top == 0:
            return left, right
        if not ours or not theirs or ours[0].level != theirs[0].level:
            if ours and ours[0].level == top:
                left = [
                    child for node in objects.nodes(left) for child in _children(node, start, stop)
                ]
            else:
                right = [
                    child for node in objects.nodes(right) for child in _children(node, start, stop)
                ]
        else:
            left, right = _descend(objects.nodes(left), objects.nodes(right), start, stop)


def _descend(
    ours: Sequence[Node], theirs: Sequence[Node], start: bytes, stop: bytes | None
) -> tuple[list[Id], list[Id]]:
    """Returns children that may differ; of two nodes with the same keys, those that do differ."""
    partner = {node.keys[-1]: node for node in theirs}
    narrowed: dict[bytes, list[Id]] = {}
    left: list[Id] = []
    for node in ours:
        other = partner.get(node.keys[-1])
        if other is None or other.keys != node.keys:
            left += _children(node, start, stop)
            continue
        low, high = child_range(node, start, stop)
        changed = [
            i for i in _differing(node.payload, other.payload, CHILD_SIZE) if low <= i < high
        ]
        left += [node.child(i) for i in changed]
        narrowed[other.keys[-1]] = [other.child(i) for i in changed]
    right: list[Id] = []
    for node in theirs:
        same = narrowed.get(node.keys[-1])
        right += _children(node, start, stop) if same is None else same
    return left, right


def three_way(
    objects: Objects, base: Id, target: Id, source: Id, most: int | None = None
) -> Iterator[tuple[bytes, bytes | None, bytes | None, bytes | None]]:
    """Yields key and records in base, target and source of each key that `source` changed.

    Yields the first `most` of them, if it is given. O(d log N).
    """
    changes = list(islice(diff(objects, base, source), most))
    at_target = get(objects, target, [key for key, _, _ in changes])
    for key, before, after in changes:
        yield key, before, at_target.get(key), after
