"""A cache of decoded objects that is bounded in memory."""

from __future__ import annotations

from collections.abc import Mapping
from operator import methodcaller
from typing import Generic, Protocol, TypeVar

LIMIT = 24 << 20
"""Approximate bytes of the recently used half of the cache; the older half is as large."""


class Weighed(Protocol):
    """An object that a cache can keep."""

    def weight(self) -> int:
        """Returns the approximate size in memory, in bytes."""


_LARGE = 4
"""Objects above this fraction of the cache belong to a load and are not cached."""

T = TypeVar("T", bound=Weighed)


_weight = methodcaller("weight")


class Cache(Generic[T]):
    """Decoded objects, shared by all readers of one store.

    The cache drops an object that was not used while `limit` bytes of others were.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._room = limit
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def get(self, id_: bytes) -> T | None:
        """Returns a cached object, or None."""
        value = self._young.get(id_)
        if value is None:
            value = self._old.get(id_)
            if value is not None:
                self.put(id_, value)
        return value

    def put(self, id_: bytes, decoded: T) -> None:
        """Caches an object."""
        # Concurrent threads may drop objects a little too early or too late.
        self._room -= decoded.weight()
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young[id_] = decoded

    def put_all(self, values: Mapping[bytes, T]) -> None:
        """Caches objects that belong together, unless they would replace most others."""
        weight = sum(map(_weight, values.values()))
        if weight > self._limit // _LARGE:
            return
        self._room -= weight
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young.update(values)

    def clear(self) -> None:
        """Forgets everything."""
        self._young, self._old = {}, {}
        self._room = self._limit


class Layered(Cache[T]):
    """A cache with some decoded objects on top that are not stored yet.

    What is put goes to the cache below.
    """

    def __init__(self, below: Cache[T], on_top: Mapping[bytes, T]) -> None:
        super().__init__()
        self._below = below
        self._on_top = on_top

    def get(self, id_: bytes) -> T | None:
        """Returns an object of the upper layer, a cached one, or None."""
        return self._on_top.get(id_) or self._below.get(id_)

    def put(self, id_: bytes, decoded: T) -> None:
        """Caches an object in the cache below."""
        self._below.put(id_, decoded)

    def put_all(self, values: Mapping[bytes, T]) -> None:
        """Caches objects in the cache below."""
        self._below.put_all(values)

    def clear(self) -> None:
        """Clears the cache below. The upper layer stays."""
        self._below.clear()
