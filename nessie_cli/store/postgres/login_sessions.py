"""The logins of browsers in a PostgreSQL store."""

from __future__ import annotations

from nessie_cli.store.postgres.later_table import LaterTable, Rows, Written
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

    def __init__(self, rows: Rows, written: Written) -> None:
        self._table = LaterTable(SESSIONS, rows, written)

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
