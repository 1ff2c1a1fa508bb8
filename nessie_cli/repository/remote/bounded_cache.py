"""A cache of immutable facts, bounded by the number of entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most `limit` values by key. The least recently used value is evicted first.

    Safe to use from several threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
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
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)
