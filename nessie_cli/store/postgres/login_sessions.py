"""The logins of browsers in a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.postgres.pool import PostgresConnection
from nessie_cli.store.postgres.schema import SESSIONS
from nessie_cli.store.records import StoredSession

_GET = "SELECT id, data, ends FROM sessions WHERE id = %s"
_PUT = """INSERT INTO sessions (id, data, ends) VALUES (%s, %s, %s)
    ON CONFLICT (id) DO UPDATE SET data = excluded.data, ends = excluded.ends"""
_EXTEND = "UPDATE sessions SET ends = %s WHERE id = %s"
_DELETE = "DELETE FROM sessions WHERE id = %s"
_EXPIRE = "DELETE FROM sessions WHERE ends <= %s"


class PostgresSessions:
    """The `SessionTable` of a PostgreSQL store."""

    def __init__(
        self,
        rows: Callable[[LiteralString, Sequence[object]], list[tuple[Any, ...]]],
        written: Callable[[Callable[[PostgresConnection], int]], int],
    ) -> None:
        self._rows = rows
        self._written = written

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        values = (session.id, session.data, session.ends)

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(_PUT, values).rowcount
            except psycopg.errors.UndefinedTable:
                connection.execute(SESSIONS.read_bytes())
                return connection.execute(_PUT, values).rowcount

        self._written(write)

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        try:
            rows = self._rows(_GET, (id_,))
        except StoreUnavailable as error:
            if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                return None
            raise
        return StoredSession(*rows[0]) if rows else None

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session."""
        self._change(_EXTEND, (ends, id_))

    def delete(self, id_: bytes) -> None:
        """Deletes a session."""
        self._change(_DELETE, (id_,))

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended."""
        return self._change(_EXPIRE, (now,))

    def _change(self, query: LiteralString, values: Sequence[object]) -> int:
        """Runs a statement, and returns how many rows it has changed."""

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(query, values).rowcount
            except psycopg.errors.UndefinedTable:
                return 0

        return self._written(write)
