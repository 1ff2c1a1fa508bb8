"""Turns of connections on the event loop: bytes of many clients are parsed a few at a time.

A quarter of a megabyte, which may arrive at once, can have tens of thousands of chunks or requests.
Small requests do not wait for a turn, so a health check waits for one round at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Protocol

ROUND = 0.005
"""Seconds of parsing before the event loop does other work."""


class Reading(Protocol):
    """A connection with bytes that are not parsed."""

    def parse_more(self) -> bool:
        """Parses a few bytes. Returns whether there are more."""


class Turns:
    """The connections with unparsed bytes. Only for the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Reading] = deque()

    def add(self, connection: Reading) -> None:
        """Calls `parse_more` until it returns False."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        end = perf_counter() + ROUND
        while self._waiting and perf_counter() < end:
            if self._waiting[0].parse_more():
                self._waiting.rotate(-1)
            else:
                self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._round)
