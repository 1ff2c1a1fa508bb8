"""Connections to PostgreSQL: opened on demand, reused, never shared with a forked child.

Their waits for the server are bounded.

`psycopg_pool` is not used: its threads do not survive a fork, and while the server is away it
reports a timeout instead of the reason.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import pq
from psycopg.generators import send

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.location import Location
from nessie_cli.store.postgres.rows import register

PATIENCE = 30.0
"""The default for the seconds that a call waits for a connection, a lock, or an answer."""

_CLOSING = 5.0  # seconds that `close` waits for calls that are under way
_LOCK_SHARE = 0.9  # of the patience: the server reports a lock before the client gives up
# A writer that stops between the two trips of a commit holds locks. Others outlast it.
_IDLE_SHARE = 0.3

# Look-ups by index stay look-ups by index, whatever the statistics of a young table say. A database
# may have other defaults for isolation and durability; a stronger `synchronous_commit` is kept.
_SETUP = """SELECT set_config('search_path', quote_ident(%s), false),
    set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', %s, false),
    set_config('default_transaction_isolation', 'read committed', false),
    CASE WHEN current_setting('synchronous_commit') = 'off'
        THEN set_config('synchronous_commit', 'on', false) END,
    set_config('enable_seqscan', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false)"""

Statement = tuple[LiteralString, Sequence[Any]]
"""A statement and its parameters."""

_INTERVAL = 0.1  # seconds between two looks at the clock


class Pool:
    """Up to `location.pool_size` connections, of which some are kept free for reading.

    A commit may wait for the holder of a lease, and that one has to read: if commits took all
    connections, the two would wait for each other. `opened` counts the connections that were ever
    opened.
    """

    def __init__(self, location: Location, patience: float) -> None:
        self.location = location
        self.patience = patience
        self.closed = False
        self.opened = 0
        self._for_writing = location.pool_size - max(1, location.pool_size // 4)
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[PostgresConnection] = []
        self._open: weakref.WeakSet[PostgresConnection] = weakref.WeakSet()
        self._busy = 0
        self._writing = 0
        self._gave_up = False
        self._close_idle = weakref.finalize(self, _close_all, self._idle, os.getpid())

    def connect(self, until: float | None = None) -> PostgresConnection:
        """Opens a connection, which the caller closes; raises `StoreUnavailable`.

        It fails if it is not open `until` a time of the monotonic clock.
        """
        if self.closed:
            raise self._closed_error()
        url, options = self.location.url, dict(self.location.connection)
        if until is not None:
            limit = self.limit(until)
            options["connect_timeout"] = _connect_timeout(options["connect_timeout"], limit)
        try:
            connection = PostgresConnection.connect(
                **options,  # type: ignore[arg-type]
                autocommit=True,
                client_encoding="UTF8",
            )
        except (psycopg.Error, OSError) as error:
            raise failure(url, error) from error
        connection.longest_wait = self.limit(until)
        try:
            register(connection)
            limits = [f"{int(self.patience * x * 1000)}ms" for x in (_LOCK_SHARE, _IDLE_SHARE)]
            connection.execute(_SETUP, (self.location.schema, *limits), prepare=False)
        except psycopg.Error as error:
            connection.close()
            raise failure(url, error) from error
        except BaseException:
            connection.close()
            raise
        with self._changed:
            self.opened += 1
            self._open.add(connection)
            # `close` may have missed a connection that was just opened.
            connection.abandoned = self._gave_up
        return connection

    def limit(self, until: float | None) -> float:
        """Returns the seconds that a wait may take, which ends `until` a time of the clock."""
        return (
            self.patience if until is None else min(self.patience, max(0, until - time.monotonic()))
        )

    @contextmanager
    def connection(
        self, *, writing: bool = False, bounded: bool = True, until: float | None = None
    ) -> Iterator[PostgresConnection]:
        """Lends a connection that is in no transaction.

        Unless `bounded`, its statements may take as long as they need. All waits together end
        `until` a time of the monotonic clock, if it is given.
        """
        self._enter(writing, until)
        process, connection = os.getpid(), None
        try:
            connection = self._take(until)
            connection.longest_wait = self.limit(until) if bounded else None
            yield connection
        finally:
            if os.getpid() == process:
                self._leave(connection, writing)
            else:
                # This is a child that was forked inside: the connection is its parent's.
                _inherited.append(connection)

    @contextmanager
    def extra_connection(self) -> Iterator[PostgresConnection]:
        """Lends a connection outside of the limit."""
        process, connection = os.getpid(), self._take()
        connection.longest_wait = self.patience
        try:
            yield connection
        finally:
            if os.getpid() == process:
                self._keep(connection)
            else:
                _inherited.append(connection)

    def _enter(self, writing: bool, until: float | None) -> None:
        with self._changed:
            free = self._changed.wait_for(
                lambda: self.closed or self._has_room(writing), self.limit(until)
            )
            if self.closed:
                raise self._closed_error()
            if not free:
                raise StoreUnavailable(
                    f"store {self.location.url}: no connection of this process became free; try "
                    f"again, or open it with more than pool_size={self.location.pool_size}"
                )
            self._busy += 1
            self._writing += writing

    def _has_room(self, writing: bool) -> bool:
        if writing and self._writing >= self._for_writing:
            return False
        return self._busy < self.location.pool_size

    def _take(self, until: float | None = None) -> PostgresConnection:
        while True:
            with self._changed:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.connect(until)
            if is_usable(connection):
                return connection
            connection.close()

    def _leave(self, connection: PostgresConnection | None, writing: bool) -> None:
        if connection is not None:
            self._keep(connection)
        with self._changed:
            self._busy -= 1
            self._writing -= writing
            self._changed.notify_all()

    def _keep(self, connection: PostgresConnection) -> None:
        usable = is_usable(connection)
        if connection.is_silent:
            # The others have probably lost the same server, so nobody should wait for it again.
            self._forget_idle()
        with self._changed:
            if usable and not self.closed and len(self._idle) < self.location.pool_size:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Closes idle connections and waits a little for the others, which their users close.

        Then calls that still wait for the server end with an error.
        """
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._forget_idle()
        deadline = time.monotonic() + _CLOSING
        with self._changed:
            self._changed.wait_for(lambda: not self._busy, deadline - time.monotonic())
            self._gave_up = True
            for connection in self._open:
                connection.abandoned = True

    def _forget_idle(self) -> None:
        with self._changed:
            idle, self._idle[:] = list(self._idle), []
        for connection in idle:
            connection.close()

    def _closed_error(self) -> StoreUnavailable:
        return StoreUnavailable(f"store {self.location.url} has been closed; open it again")

    def disown(self) -> None:
        """Forgets all connections in a forked child. Their sockets belong to the parent."""
        self._close_idle.detach()
        _inherited.extend(self._idle)
        self._reset()


def _connect_timeout(given: str, limit: float) -> str:
    """Returns a timeout of libpq in seconds within a limit. 0 and less stand for none."""
    if not given.removeprefix("-").isdecimal():
        return given
    most = max(1, math.ceil(limit))
    return given if 0 < int(given) <= most else str(most)


def is_usable(connection: PostgresConnection) -> bool:
    """Returns whether a connection is in no transaction and the server has not ended it."""
    state = connection.pgconn
    if state.status != pq.ConnStatus.OK or state.transaction_status != pq.TransactionStatus.IDLE:
        return False
    # The server says nothing on its own accord except good-bye.
    poll = select.poll()
    poll.register(state.socket, select.POLLIN)
    return not poll.poll(0)


def _close_all(connections: list[PostgresConnection], process: int) -> None:
    if os.getpid() == process:
        while connections:
            connections.pop().close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_inherited: list[PostgresConnection | None] = []


def _disown_all() -> None:
    for pool in list(_pools):
        pool.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)


# -- a connection ----------------------------------------------------------------------------------


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


class PostgresConnection(psycopg.Connection[tuple[Any, ...]]):
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
        start = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready:
                    self._check(time.monotonic() - start)
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
            raise SilentServer(f"the server did not answer for {self.longest_wait:.2g} seconds")
