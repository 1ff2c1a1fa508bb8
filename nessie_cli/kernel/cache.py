"""Decoded objects, kept between reads within bounds of memory."""

from __future__ import annotations

from collections.abc import Mapping
from operator import methodcaller
from typing import Generic, Protocol, TypeVar

LIMIT = 24 << 20
"""Bytes of memory, about, of those used last; as many again wait to be forgotten."""


class Weighed(Protocol):
    """What can be kept."""

    def weight(self) -> int:
        """The bytes of memory that it takes, about."""


_LARGE = 4
"""Objects that take more than this fraction of the cache are a load, which nobody reads as a whole next."""

T = TypeVar("T", bound=Weighed)


_weight = methodcaller("weight")


class Cache(Generic[T]):
    """Decoded objects, bounded: what was not used while `limit` bytes of others were is forgotten. Shared by all readers of one store."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._room = limit
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def get(self, id_: bytes) -> T | None:
        """A decoded object that was put here before, or None."""
        found = self._young.get(id_)
        if found is None:
            found = self._old.get(id_)
            if found is not None:
                self.put(id_, found)
        return found

    def put(self, id_: bytes, decoded: T) -> None:
        """Remember a decoded object."""
        # Threads that do this at once may forget a little too early or too late.
        self._room -= decoded.weight()
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young[id_] = decoded

    def put_all(self, found: Mapping[bytes, T]) -> None:
        """Remember some decoded objects that belong together, unless they would take the place of most others."""
        weight = sum(map(_weight, found.values()))
        if weight > self._limit // _LARGE:
            return
        self._room -= weight
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young.update(found)

    def clear(self) -> None:
        """Forgets everything."""
        self._young, self._old = {}, {}
        self._room = self._limit


class Layered(Cache[T]):
    """A cache with some decoded objects on top that are not stored yet. What is put goes to the cache below."""

    def __init__(self, below: Cache[T], on_top: Mapping[bytes, T]) -> None:
        super().__init__()
        self._below = below
        self._on_top = on_top

    def get(self, id_: bytes) -> T | None:
        """See `Cache`."""
        return self._on_top.get(id_) or self._below.get(id_)

    def put(self, id_: bytes, decoded: T) -> None:
        """See `Cache`."""
        self._below.put(id_, decoded)

    def put_all(self, found: Mapping[bytes, T]) -> None:
        """See `Cache`."""
        self._below.put_all(found)

    def clear(self) -> None:
        """See `Cache`."""
        self._below.clear()
