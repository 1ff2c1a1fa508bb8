"""The logins of browsers in a SQLite store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from nessie_cli.store.records import StoredSession
from nessie_cli.store.sqlite.schema import LATER_TABLES

_CREATE = LATER_TABLES["sessions"].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = 'sessions'"
_GET = "SELECT id, data, ends FROM sessions WHERE id = ?"
_PUT = "INSERT OR REPLACE INTO sessions (id, data, ends) VALUES (?, ?, ?)"
_EXTEND = "UPDATE sessions SET ends = ? WHERE id = ?"
_DELETE = "DELETE FROM sessions WHERE id = ?"
_EXPIRE = "DELETE FROM sessions WHERE ends <= ?"


class SQLiteSessions:
    """The `SessionTable` of a SQLite store, by its functions that run statements."""

    def __init__(
        self,
        rows: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]],
        transaction: Callable[[], AbstractContextManager[apsw.Cursor]],
    ) -> None:
        self._rows = rows
        self._transaction = transaction
        self._exists = False

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        with self._transaction() as cursor:
            cursor.execute(_CREATE)
            cursor.execute(_PUT, (session.id, session.data, session.ends))

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        rows = self._rows(_GET, (id_,)) if self._is_there() else []
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

    def _change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Runs a statement, and returns how many rows it has changed."""
        if not self._is_there():
            return 0
        with self._transaction() as cursor:
            cursor.execute(sql, values)
            return cursor.connection.changes()

    def _is_there(self) -> bool:
        # A table that another process creates is seen at the next call.
        self._exists = self._exists or bool(self._rows(_EXISTS, ()))
        return self._exists
