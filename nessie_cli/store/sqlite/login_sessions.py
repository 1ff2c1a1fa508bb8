"""The logins of browsers in a SQLite store."""

from __future__ import annotations

from nessie_cli.store.records import StoredSession
from nessie_cli.store.sqlite.later_table import LaterTable, Rows, Transaction

_GET = "SELECT id, data, ends FROM sessions WHERE id = ?"
_PUT = "INSERT OR REPLACE INTO sessions (id, data, ends) VALUES (?, ?, ?)"
_EXTEND = "UPDATE sessions SET ends = ? WHERE id = ?"
_DELETE = "DELETE FROM sessions WHERE id = ?"
_EXPIRE = "DELETE FROM sessions WHERE ends <= ?"


class SQLiteSessions:
    """The `SessionTable` of a SQLite store."""

    def __init__(self, rows: Rows, transaction: Transaction) -> None:
        self._table = LaterTable("sessions", rows, transaction)

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        self._table.insert(_PUT, (session.id, session.data, session.ends))

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        rows = self._table.read(_GET, (id_,))
        return StoredSession(*rows[0]) if rows else None

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session."""
        self._table.change(_EXTEND, (ends, id_))

    def delete(self, id_: bytes) -> None:
        """Deletes a session."""
        self._table.change(_DELETE, (id_,))

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended."""
        return self._table.change(_EXPIRE, (now,))
