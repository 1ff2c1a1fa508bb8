"""A connection to PostgreSQL whose waits for the server are bounded."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

_INTERVAL = 0.1  # seconds between two looks at the clock


class SilentServer(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed."""


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if the server does not answer within `longest_wait` seconds.

    The network may be intact meanwhile: a stopped server process, a proxy that forwards nothing,
    and a commit that waits for a dead standby are silent without end. None waits without end, for
    statements that take long on a healthy server.
    """

    longest_wait: float | None = None
    is_silent = False
    """Whether the server did not answer in time."""
    abandoned = False
    """Whether to end a wait at once. Another thread may set it."""

    def wait(self, gen: Generator[Any, Any, Any], interval: float = _INTERVAL, *_: Any) -> Any:
        """Runs a generator of psycopg until it ends. Raises `SilentServer`."""
        return super().wait(self._bounded(gen), interval)

    def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        begin = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready:
                    self._check(time.monotonic() - begin)
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _check(self, waited: float) -> None:
        """Closes the connection and raises `SilentServer` if the wait took too long."""
        if self.abandoned:
            self.close()
            raise SilentServer("the store was closed while the server did not answer")
        if self.longest_wait is not None and waited > self.longest_wait:
            self.is_silent = True
            self.close()
            raise SilentServer(f"the server did not answer for {self.longest_wait:g} seconds")
