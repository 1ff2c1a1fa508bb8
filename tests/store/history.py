"""A history of concurrent operations on references, and whether one order of them explains all that was seen.

Every write gives its reference a target that no other write gives it. So the reflog shows the order of writes, each read tells which write
it has seen, and the history is linearizable if this order agrees with real time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from nessie_cli.store.base import Store


@dataclass(frozen=True)
class Event:
    """One operation on one reference: when it was called and answered, and the target that it saw or wrote."""

    name: str
    called: float
    answered: float
    target: bytes
    wrote: bool


class History:
    """Collects events from many threads. `refused` and `unknown` are the targets of writes that were not acknowledged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.events: list[Event] = []
        self.refused: set[bytes] = set()
        self.unknown: set[bytes] = set()

    def add(self, name: str, called: float, target: bytes, *, wrote: bool = False) -> None:
        event = Event(name, called, time.monotonic(), target, wrote)
        with self._lock:
            self.events.append(event)

    def read(self, name: str, look: Callable[[], bytes]) -> bytes:
        """Record what a read has seen."""
        called = time.monotonic()
        target = look()
        self.add(name, called, target)
        return target

    def check(self, store: Store) -> int:
        """Raise `AssertionError` if the history is impossible; return the number of events checked."""
        for name in {event.name for event in self.events}:
            self._check(name, store)
        return len(self.events)

    def _check(self, name: str, store: Store) -> None:
        moves = [row.move for row in reversed(store.reflog(name))]
        assert moves[0].before is None
        assert [move.before for move in moves[1:]] == [move.after for move in moves[:-1]], "an update was lost"
        place = {move.after: number for number, move in enumerate(moves)}
        assert len(place) == len(moves), "a write was done twice"
        assert not self.refused & place.keys(), "a refused write was done"
        events = sorted((event for event in self.events if event.name == name), key=lambda event: event.called)
        writes = {event.target: event for event in events if event.wrote}
        assert writes.keys() <= place.keys(), "an acknowledged write is missing"
        assert place.keys() <= writes.keys() | self.unknown | {moves[0].after}, "a write that nobody made"

        answered: list[tuple[float, int]] = []
        newest = 0
        for event in events:
            while answered and answered[0][0] < event.called:
                newest = max(newest, heappop(answered)[1])
            assert event.target in place, "a read has seen what was never committed"
            seen = place[event.target]
            assert seen > newest if event.wrote else seen >= newest, "an operation did not see what was acknowledged before it"
            if event.target in writes:
                assert writes[event.target].called <= event.answered, "a read has seen the future"
            heappush(answered, (event.answered, seen))
