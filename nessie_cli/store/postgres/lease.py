"""Leases: exclusive advisory locks, each held by a connection of its own.

PostgreSQL grants a lock in order of arrival. Commits take the lock of each moved reference in
shared mode, so they wait for the holder, except on the holder's own connection. The server ends a
lease by ending its connection once that was idle for `LEASE` seconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from nessie_cli.store.base import LEASE
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.pool import Pool, PostgresConnection, is_usable

WAIT = 5 * LEASE
"""Seconds that a writer waits for a lease. Then it goes on without one."""

_BEGIN = """SELECT set_config('lock_timeout', %s, true), set_config('idle_session_timeout', %s, false),
    pg_advisory_lock(%s)"""
END = "pg_advisory_unlock_all(), set_config('idle_session_timeout', '0', false)"
"""The expressions that end the lease of a connection."""


class Leases:
    """The leases of one process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._free = threading.BoundedSemaphore(pool.location.pool_size)
        self._held: dict[str, tuple[int, PostgresConnection]] = {}

    @contextmanager
    def hold(self, name: str) -> Iterator[str]:
        """Waits for a lease and yields its token, empty if none was granted in time."""
        if not self._free.acquire(timeout=WAIT):
            yield ""
            return
        try:
            with self._pool.extra_connection() as connection:
                token = self._begin(connection, name)
                try:
                    yield token
                finally:
                    self._end(connection, token)
        finally:
            self._free.release()

    def ended(self, token: str) -> None:
        """Forgets a lease that a statement on its connection has ended."""
        self._held.pop(token, None)

    def connection(self, token: str) -> PostgresConnection | None:
        """Returns the connection that holds a lease, or None if the lease has ended."""
        process, connection = self._held.get(token, (0, None))
        if connection is None or process != os.getpid() or not is_usable(connection):
            return None
        return connection

    def _begin(self, connection: PostgresConnection, name: str) -> str:
        wait, lease = (f"{int(seconds * 1000)}ms" for seconds in (WAIT, LEASE))
        try:
            key = self._pool.location.lock_key(f"lease {name}")
            connection.execute(_BEGIN, (wait, lease, key))
        except psycopg.errors.LockNotAvailable:
            connection.close()
            return ""
        except psycopg.Error as error:
            connection.close()
            raise failure(self._pool.location.url, error) from error
        token = os.urandom(8).hex()
        self._held[token] = (os.getpid(), connection)
        return token

    def _end(self, connection: PostgresConnection, token: str) -> None:
        process, _ = self._held.pop(token, (0, None))
        if process != os.getpid():
            # There is none, it has ended, or it is that of a parent process.
            return
        try:
            connection.execute(f"SELECT {END}")
        except psycopg.Error:
            # The server has ended the lease, and the connection with it.
            connection.close()
