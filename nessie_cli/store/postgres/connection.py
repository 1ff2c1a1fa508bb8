"""A connection to PostgreSQL whose waits for the server are bounded."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg.generators import send

Statement = tuple[LiteralString, Sequence[Any]]
"""A statement and its parameters."""

_INTERVAL = 0.1  # seconds between two looks at the clock


class SilentServer(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed."""


class _Trip(psycopg.Pipeline):
    """A pipeline that sends everything at once, with Sync at the end.

    psycopg sends each statement on its own, and a request to flush behind Sync. After such a
    request, PostgreSQL does not end a transaction whose client is silent.
    """

    def _communicate_gen(self) -> Generator[Any, Any, None]:
        # libpq collects the messages.
        while self.command_queue:
            self.command_queue.popleft()()
        yield from ()

    def _exit_gen(self) -> Generator[Any, Any, None]:
        self._enqueue_sync()
        yield from self._communicate_gen()
        yield from send(self.pgconn)
        yield from self._fetch_gen(flush=False)


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

    def send(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Sends statements in one round trip. Returns the rows of each, or raises the first error.

        Those after an error are not executed.
        """
        cursors: list[psycopg.Cursor[tuple[Any, ...]]] = []
        first: Exception | None = None
        self._pipeline = _Trip(self)
        try:
            with self._pipeline:
                try:
                    cursors += [self.execute(*statement, binary=True) for statement in statements]
                except (psycopg.Error, UnicodeEncodeError) as error:
                    # Raised in here, it would make psycopg log the errors of the others.
                    first = error
        except psycopg.Error as error:
            raise first or error from None
        finally:
            self._pipeline = None
        if first is not None:
            raise first
        return [
            cursor.fetchall() if cursor.pgresult and cursor.pgresult.ntuples else []
            for cursor in cursors
        ]

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
