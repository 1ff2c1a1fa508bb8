"""A cache of immutable values with a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _unweighted(value: Any) -> int:  # noqa: ARG001 - the interface
    return 1


class BoundedCache(Generic[K, V]):
    """Values by key, whose sizes are at most `limit` in all; the size of each is 1 by default.

    The least recently used values are evicted first, and values above `largest` are not cached.
    Safe to use from several threads.
    """

    def __init__(
        self, limit: int, size_of: Callable[[V], int] = _unweighted, largest: int | None = None
    ) -> None:
        self._limit = limit
        self._size_of = size_of
        self._largest = limit if largest is None else largest
        self._size = 0
        self._lock = Lock()
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Returns the value of a key, or None if it is not cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __setitem__(self, key: K, value: V) -> None:
        size = self._size_of(value)
        if size > self._largest:
            return
        with self._lock:
            self._drop(key)
            self._values[key] = value
            self._size += size
            while self._size > self._limit:
                self._size -= self._size_of(self._values.popitem(last=False)[1])

    def drop(self, key: K) -> None:
        """Forgets a key."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: K) -> None:
        if key in self._values:
            self._size -= self._size_of(self._values.pop(key))

    def __len__(self) -> int:
        return len(self._values)
