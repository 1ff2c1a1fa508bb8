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
from nessie_cli.store.postgres.pool import Connection, Pool, is_usable

WAIT = 5 * LEASE
"""Seconds that a writer waits for a lease. Then it goes on without one."""

_SETUP = (
    "SELECT set_config('lock_timeout', %s, false), set_config('idle_session_timeout', %s, false)"
)
_LOCK = "SELECT pg_advisory_lock(lock_key_1('lease ' || %s))"


class Leases:
    """The leases of one process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._free = threading.BoundedSemaphore(pool.location.pool_size)
        self._held: dict[str, tuple[int, Connection]] = {}

    @contextmanager
    def hold(self, name: str) -> Iterator[str]:
        """See `Store.lease`. The token is empty if no lease was to be had in time."""
        if not self._free.acquire(timeout=WAIT):
            yield ""
            return
        connection, process, token = None, os.getpid(), ""
        try:
            connection = self._pool.connect()
            if self._lock(connection, name):
                token = os.urandom(8).hex()
                self._held[token] = (process, connection)
            yield token
        finally:
            self._free.release()
            self._held.pop(token, None)
            if connection is not None and os.getpid() == process:
                connection.close()

    def connection(self, token: str) -> Connection | None:
        """Returns the connection that holds a lease, or None if the lease has ended."""
        process, connection = self._held.get(token, (0, None))
        if connection is None or process != os.getpid() or not is_usable(connection):
            return None
        return connection

    def _lock(self, connection: Connection, name: str) -> bool:
        wait, lease = (f"{int(seconds * 1000)}ms" for seconds in (WAIT, LEASE))
        try:
            connection.execute(_SETUP, (wait, lease))
            connection.execute(_LOCK, (name,))
        except psycopg.errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            raise failure(self._pool.location.url, error) from error
        return True
