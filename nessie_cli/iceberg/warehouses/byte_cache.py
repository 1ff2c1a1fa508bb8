"""A cache of bytes with a limit, from which those that were used longest ago are dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

MOST_BYTES = 32 << 20
"""Bytes of all values of a cache."""
MOST_OF_ONE = 1 << 20
"""The largest value that is cached."""


class ByteCache:
    """Values by key. Threads may share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()

    def find(self, key: Hashable) -> bytes | None:
        """Returns the value of a key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def keep(self, key: Hashable, value: bytes) -> None:
        """Caches a value."""
        if len(value) > MOST_OF_ONE:
            return
        with self._lock:
            self._bytes -= len(self._kept.pop(key, b""))
            self._kept[key] = value
            self._bytes += len(value)
            while self._bytes > self._most:
                self._bytes -= len(self._kept.popitem(last=False)[1])

    def drop(self, key: Hashable) -> None:
        """Forgets a key."""
        with self._lock:
            self._bytes -= len(self._kept.pop(key, b""))
