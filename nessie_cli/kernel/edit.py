"""Builds key trees from sorted items, and edits existing ones.

Both give the same tree for the same map, which makes ids comparable; tests prove it. One routine
serves every level: edits of the entries of one level become edits of the level above. New
boundaries are searched past the edited node only until one coincides with the end of an old node.
From there on the level is unchanged.

A node ends after a key if the hash of the key falls below a hazard that grows with the cube of the
node's logical size (Weibull, shape 4). So sizes stay close to the target, and a boundary depends
only on the keys since the last one. At about twice the target every key is a boundary, so no set
of keys can make nodes large. Values have a fixed size, and changing one moves no boundary. The
arithmetic is part of the format: if a number here changes, equal catalogs get different ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Protocol

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel.forms import CHILD_SIZE, RECORD_SIZE, Id, Node, child_id_of, child_slice
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.tree import EMPTY, Item, get, path_to

Edit = tuple[bytes, bytes | None]
WINDOW = 1000
"""Edits whose leaves are fetched together."""


class _Level:
    """One level of a tree under construction.

    Its first node waits, because only a second one makes it an entry of a level above.
    """

    def __init__(self, chunker: Chunker) -> None:
        self.chunker = chunker
        self.first: Node | None = None
        self.risen = False


class _Builder:
    """Builds a tree upwards from the entries of one level, in constant memory."""

    def __init__(self, objects: Objects, level: int) -> None:
        self._objects = objects
        self._base = level
        self._levels: list[_Level] = []
        self._grow()

    def _grow(self) -> None:
        self._levels.append(_Level(Chunker(self._base + len(self._levels))))

    def _add(self, node: Node) -> None:
        level = self._levels[node.level - self._base]
        if not level.risen and level.first is None:
            level.first = node
            return
        if not level.risen:
            level.risen = True
            self._grow()
            self._rise(level.first)
        self._rise(node)

    def _rise(self, node: Node | None) -> None:
        assert node is not None
        above = self._levels[node.level - self._base + 1].chunker
        if (ended := above.add(*child_entry(self._objects, node))) is not None:
            self._add(ended)

    def root(self, items: Iterable[Item]) -> Id:
        add = self._levels[0].chunker.add
        for key, payload in items:
            if (node := add(key, payload)) is not None:
                self._add(node)
        for level in self._levels:
            if (node := level.chunker.finish()) is not None:
                self._add(node)
            if not level.risen:
                return self._objects.add_node(level.first) if level.first else EMPTY
        raise AssertionError("the uppermost level has one node")


def child_entry(objects: Objects, node: Node) -> Item:
    """Adds a node. Returns its entry for the level above."""
    return node.keys[-1], child_slice(objects.add_node(node), node.count())


def build(objects: Objects, items: Iterable[Item]) -> Id:
    """Returns the root of a map of ascending, distinct items, in constant memory."""
    return _Builder(objects, 0).root(items)


def edit(objects: Objects, root: Id, edits: Mapping[bytes, bytes | None]) -> Id:
    """Returns the root of the map after the edits; None deletes a key.

    O(k log N) nodes read and written.
    """
    changes = sorted(edits.items())
    if len(changes) == 1 and (replaced := _replace_one(objects, root, *changes[0])):
        return replaced
    if root == EMPTY:
        return build(objects, ((key, record) for key, record in changes if record is not None))
    top = objects.node(root).level
    for level in range(top + 1):
        if not changes:
            return root
        changes = _LevelEdit(objects, root, level).apply(changes)
    if not changes:
        return root
    entries = [(key, payload) for key, payload in changes if payload is not None]
    if len(entries) > 1:
        return _Builder(objects, top + 1).root(entries)
    return _lowest_single(objects, child_id_of(entries[0][1])) if entries else EMPTY


def _replace_one(objects: Objects, root: Id, key: bytes, record: bytes | None) -> Id | None:
    """Handles the most common commit, one existing key with a new record.

    No boundary and no count changes. Returns None for other edits.
    """
    path = path_to(objects, root, key) if record is not None else None
    if path is None:
        return None
    replacement = record or b""
    size = RECORD_SIZE
    for node, index in reversed(path):
        start, payload = index * size, node.payload
        end = start + len(replacement)
        if payload[start:end] == replacement:
            return root
        root = objects.add_node(
            Node(node.level, node.keys, payload[:start] + replacement + payload[end:])
        )
        # The number of keys, which follows the child's id, stays the same.
        replacement, size = root, CHILD_SIZE
    return root


def _lowest_single(objects: Objects, root: Id) -> Id:
    """Returns the root below inner nodes with one child: a map must not have two roots."""
    node = objects.node(root)
    while node.level and len(node.keys) == 1:
        objects.discard_node(root)
        root = node.child(0)
        node = objects.node(root)
    return root


class _Cursor:
    """A position among the nodes of one level of an existing tree."""

    def __init__(self, objects: Objects, root: Id, level: int) -> None:
        self._objects = objects
        self._root = root
        self._level = level
        self._path: list[tuple[Node, int]] = []
        self.node = objects.node(root)

    @property
    def is_last(self) -> bool:
        """Whether no node of the level follows."""
        return all(index == len(node.keys) - 1 for node, index in self._path)

    def seek(self, key: bytes) -> None:
        """Moves to the node that contains a key or would contain it, if need be the last one."""
        self._path = []
        node = self._objects.node(self._root)
        while node.level > self._level:
            index = min(bisect_left(node.keys, key), len(node.keys) - 1)
            self._path.append((node, index))
            node = self._objects.node(node.child(index))
        self.node = node

    def advance(self) -> None:
        """Moves to the next node of the level."""
        while self._path[-1][1] == len(self._path[-1][0].keys) - 1:
            self._path.pop()
        parent, index = self._path.pop()
        self._path.append((parent, index + 1))
        node = self._objects.node(parent.child(index + 1))
        while node.level > self._level:
            self._path.append((node, 0))
            node = self._objects.node(node.child(0))
        self.node = node


class _LevelEdit:
    """Applies sorted edits to the entries of one level. Returns the edits of the level above."""

    def __init__(self, objects: Objects, root: Id, level: int) -> None:
        self._objects = objects
        self._root = root
        self._level = level
        self._cursor = _Cursor(objects, root, level)
        self._chunker = Chunker(level)
        self._above: dict[bytes, bytes | None] = {}

    def _add(self, node: Node) -> None:
        key, payload = child_entry(self._objects, node)
        self._above[key] = payload

    def apply(self, edits: Sequence[Edit]) -> list[Edit]:
        position = fetched = 0
        while position < len(edits):
            if self._level == 0 and position >= fetched and len(edits) > 1:
                fetched = position + WINDOW
                # Fills the cache with one round trip per level for the cursor.
                get(self._objects, self._root, [key for key, _ in edits[position:fetched]])
            self._cursor.seek(edits[position][0])
            end = self._end_of_node(edits, position)
            if end == position:
                key = edits[position][0]
                raise DamagedObject(
                    f"a node of the key tree ends before key {key!r}, although its parent assigns"
                    " the key to it; nessie fsck lists what is affected"
                )
            if not self._replace(edits[position:end]):
                end = self._rechunk(edits, position, end)
            position = end
        return sorted(self._above.items())

    def _end_of_node(self, edits: Sequence[Edit], position: int) -> int:
        if self._cursor.is_last:
            return len(edits)
        last = self._cursor.node.keys[-1]
        while position < len(edits) and edits[position][0] <= last:
            position += 1
        return position

    def _replace(self, edits: Sequence[Edit]) -> bool:
        """Handles the common case: every edit replaces the payload of an existing key."""
        node = self._cursor.node
        size = CHILD_SIZE if node.level else RECORD_SIZE
        payload = bytearray(node.payload)
        for key, replacement in edits:
            index = bisect_left(node.keys, key)
            if replacement is None or index == len(node.keys) or node.keys[index] != key:
                return False
            payload[index * size : (index + 1) * size] = replacement
        if payload != node.payload:
            self._add(Node(node.level, node.keys, bytes(payload)))
        return True

    def _rechunk(self, edits: Sequence[Edit], position: int, end: int) -> int:
        """Chunks this node's edited entries, and the next nodes' until a boundary is an old one."""
        while True:
            node = self._cursor.node
            # A new node with the same last key replaces this deletion.
            self._above.setdefault(node.keys[-1], None)
            self._feed(node, edits[position:end])
            position = end
            if not self._chunker.open:
                return position
            if self._cursor.is_last:
                if (last := self._chunker.finish()) is not None:
                    self._add(last)
                return position
            self._cursor.advance()
            end = self._end_of_node(edits, position)

    def _feed(self, node: Node, edits: Sequence[Edit]) -> None:
        add = self._chunker.add
        for key, payload in _edited(node, edits):
            if (ended := add(key, payload)) is not None:
                self._add(ended)


def _edited(node: Node, edits: Sequence[Edit]) -> Iterator[Item]:
    """Yields the entries of a node with edits."""
    index = 0
    for key, payload in edits:
        at = bisect_left(node.keys, key, index)
        for unchanged in range(index, at):
            yield node.keys[unchanged], node.slice(unchanged)
        index = at + (at < len(node.keys) and node.keys[at] == key)
        if payload is not None:
            yield key, payload
    for unchanged in range(index, len(node.keys)):
        yield node.keys[unchanged], node.slice(unchanged)


# -- boundaries between the nodes of a level -------------------------------------------------------

LEAF_TARGET = 2048
INNER_TARGET = 4096
"""Scale of the size distribution in bytes; the mean is 0.9 of it."""

PARAMETERS = f"weibull4 leaf={LEAF_TARGET} inner={INNER_TARGET}"
"""The parameters as a repository records them. Trees with other parameters share no nodes."""

_SCALE = [LEAF_TARGET**4, INNER_TARGET**4]
_ENTRY_OVERHEAD = [RECORD_SIZE + 2, CHILD_SIZE + 2]


class _Hash(Protocol):
    def copy(self) -> _Hash: ...
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


@cache
def _key_hash(level: int) -> _Hash:
    """Returns the hash that decides the boundaries of a level.

    Each level has its own, because the hash of the level below selected its keys.
    """
    from hashlib import blake2b

    return blake2b(digest_size=4, person=b"nessie%d" % level)


class Chunker:
    """Takes the entries of one level in key order and returns nodes."""

    def __init__(self, level: int) -> None:
        self._level = level
        inner = 1 if level else 0
        self._hash = _key_hash(level)
        self._scale = _SCALE[inner]
        self._overhead = _ENTRY_OVERHEAD[inner]
        self._at_least = 2 if level else 1
        self._keys: list[bytes] = []
        self._slices: list[bytes] = []
        self._size = 0

    @property
    def open(self) -> bool:
        """Whether entries were added since the last boundary."""
        return bool(self._keys)

    def add(self, key: bytes, payload: bytes) -> Node | None:
        """Appends an entry. Returns the node that ends with it, if it is a boundary."""
        self._keys.append(key)
        self._slices.append(payload)
        entry = len(key) + self._overhead
        self._size = size = self._size + entry
        hasher = self._hash.copy()
        hasher.update(key)
        if (
            int.from_bytes(hasher.digest(), "big") * self._scale
            < (size * size * size * entry) << 34
            and len(self._keys) >= self._at_least
        ):
            return self.finish()
        return None

    def finish(self) -> Node | None:
        """Returns the node of the entries since the last boundary, None without any."""
        if not self._keys:
            return None
        node = Node(self._level, tuple(self._keys), b"".join(self._slices))
        self._keys = []
        self._slices = []
        self._size = 0
        return node
