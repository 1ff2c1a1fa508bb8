"""Cache of facts about a server that stay true, bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Known(Generic[K, V]):
    """Facts by key, at most `most` of them: the least recently used are forgotten.

    Safe to use from several threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._facts: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """A fact; None if it is not known."""
        with self._lock:
            found = self._facts.get(key)
            if found is not None:
                self._facts.move_to_end(key)
            return found

    def __contains__(self, key: K) -> bool:
        return key in self._facts

    def __setitem__(self, key: K, fact: V) -> None:
        with self._lock:
            self._facts[key] = fact
            self._facts.move_to_end(key)
            if len(self._facts) > self._most:
                self._facts.popitem(last=False)

    def __len__(self) -> int:
        return len(self._facts)
