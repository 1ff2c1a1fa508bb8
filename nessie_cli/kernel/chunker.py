"""The boundaries between the nodes of one level of the key tree.

A node ends after a key if the hash of the key falls below a hazard that grows with the cube of the
node's logical size (Weibull, shape 4). So sizes stay close to the target, and a boundary depends
only on the keys since the last one. At about twice the target every key is a boundary, so no set
of keys can make nodes large. Values have a fixed size, and changing one moves no boundary. The
arithmetic is part of the format: if a number here changes, equal catalogs get different ids.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

from nessie_cli.kernel.forms import CHILD_SIZE, RECORD_SIZE, Node

LEAF_TARGET = 2048
INNER_TARGET = 4096
"""Scale of the size distribution in bytes; the mean is 0.9 of it."""

PARAMETERS = f"weibull4 leaf={LEAF_TARGET} inner={INNER_TARGET}"
"""The parameters as a repository records them. Trees with other parameters share no nodes."""

_SCALE = [LEAF_TARGET**4, INNER_TARGET**4]
_ENTRY_OVERHEAD = [RECORD_SIZE + 2, CHILD_SIZE + 2]

Emit = Callable[[Node], None]


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
    """Takes the entries of one level in key order and emits nodes."""

    def __init__(self, level: int, emit: Emit) -> None:
        self._level = level
        self._emit = emit
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

    def add(self, key: bytes, payload: bytes) -> None:
        """Appends an entry, and emits a node if the entry is a boundary."""
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
            self.finish()

    def finish(self) -> None:
        """Emits the remaining entries as the last node of the level."""
        if self._keys:
            node = Node(self._level, tuple(self._keys), b"".join(self._slices))
            self._keys = []
            self._slices = []
            self._size = 0
            self._emit(node)
