"""Leases: exclusive advisory locks, each held by a connection of its own.

PostgreSQL grants a lock in order of arrival. Commits take the lock of each moved reference in
shared mode, so they wait for the holder. The holder of a lease waits for no other one: two holders
that commit to both references would wait for each other. The server ends a lease by ending its
connection once that was idle for `LEASE` seconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

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


class HeldLease(NamedTuple):
    """A lease: the name of its reference, and the connection that holds it in a process."""

    name: str
    connection: PostgresConnection
    process: int


class Leases:
    """The leases of one process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._free = threading.BoundedSemaphore(pool.location.pool_size)
        self._held: dict[str, HeldLease] = {}

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

    def held(self, token: str) -> HeldLease | None:
        """Returns a lease, or None if it has ended."""
        lease = self._held.get(token)
        if lease is None or lease.process != os.getpid() or not is_usable(lease.connection):
            return None
        return lease

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
        self._held[token] = HeldLease(name, connection, os.getpid())
        return token

    def _end(self, connection: PostgresConnection, token: str) -> None:
        lease = self._held.pop(token, None)
        if lease is None or lease.process != os.getpid():
            # There is none, it has ended, or it is that of a parent process.
            return
        try:
            connection.execute(f"SELECT {END}")
        except psycopg.Error:
            # The server has ended the lease, and the connection with it.
            connection.close()
