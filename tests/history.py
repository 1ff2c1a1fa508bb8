"""A history of concurrent operations on registers, and a check that it is linearizable.

A register is anything that has one state at a time: a reference with its target, a key with its
content. The log of a register contains its writes in order. The history is linearizable if this
order agrees with real time, and if each read has seen a state that the register had between its
call and its answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Event(NamedTuple):
    """An operation on a register: its call and answer times, and the state that it saw or wrote.

    `write` is the id of a write, None for a read.
    """

    called: float
    answered: float
    state: Hashable
    write: Hashable | None


class Row(NamedTuple):
    """One entry of the log of a register: the id of the write, and the state that it left."""

    write: Hashable
    state: Hashable


class History:
    """Collects events from many threads.

    `refused` are the ids of writes that were not done, `unknown` of those that may have been done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, list[Event]] = {}
        self._acknowledged: set[Hashable] = set()
        self.refused: set[Hashable] = set()
        self.unknown: set[Hashable] = set()

    def add(
        self, register: str, called: float, state: Hashable, *, write: Hashable | None = None
    ) -> None:
        """Record an operation that is answered now."""
        event = Event(called, time.monotonic(), state, write)
        with self._lock:
            self._events.setdefault(register, []).append(event)
            if write is not None:
                self._acknowledged.add(write)

    def read(self, register: str, look: Callable[[], S]) -> S:
        """Record what a read has seen."""
        called = time.monotonic()
        state = look()
        self.add(register, called, state)
        return state

    @property
    def registers(self) -> set[str]:
        """All registers that were read or written."""
        return set(self._events)

    def check(self, register: str, log: Sequence[Row]) -> int:
        """Raises `AssertionError` if the history of a register is impossible.

        Returns the number of checked events. `log` has the first write first. The first row is the
        state before all events.
        """
        place = {row.write: number for number, row in enumerate(log)}
        assert len(place) == len(log), "a write was done twice"
        assert not self.refused & place.keys(), "a refused write was done"
        events = sorted(self._events.get(register, ()), key=lambda event: event.called)
        writes = {event.write: event for event in events if event.write is not None}
        assert writes.keys() <= place.keys(), "an acknowledged write is missing"
        assert place.keys() <= self._acknowledged | self.unknown | {log[0].write}, (
            "a write that nobody made"
        )

        answered: list[tuple[float, int]] = []
        newest = 0
        for event in events:
            while answered and answered[0][0] < event.called:
                newest = max(newest, heappop(answered)[1])
            if event.write is not None:
                seen = place[event.write]
                assert log[seen].state == event.state, (
                    "a write was answered with another state than it left"
                )
                assert seen > newest, "a write was put before what was acknowledged earlier"
            else:
                # The earliest possible place leaves every other one to later reads.
                seen = next(
                    (
                        number
                        for number in range(newest, len(log))
                        if log[number].state == event.state
                    ),
                    -1,
                )
                assert seen >= 0, (
                    "a read did not see what was acknowledged before it, or saw what was never"
                    " committed"
                )
            if log[seen].write in writes:
                assert writes[log[seen].write].called <= event.answered, (
                    "a read has seen the future"
                )
            heappush(answered, (event.answered, seen))
        return len(events)
