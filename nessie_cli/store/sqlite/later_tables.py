"""The tables that stores may lack, because older versions of this format made none.

They have the records of pipelines' runs, and the logins of browsers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from nessie_cli.store.records import StoredRun, StoredSession
from nessie_cli.store.sqlite.schema import LATER_TABLES

EXISTS = "SELECT 1 FROM sqlite_schema WHERE name ="
"""The beginning of the statement that reports whether a table exists; its name follows."""

Rows = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement that reads, and returns its rows."""
Transaction = Callable[[], AbstractContextManager[apsw.Cursor]]
"""Opens a transaction that writes."""


def create_later_table(cursor: apsw.Cursor, name: str) -> None:
    """Creates a table of `LATER_TABLES`, unless the store has it."""
    cursor.execute(LATER_TABLES[name].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))


class LaterTable:
    """The table of `LATER_TABLES` with a name. Without it, there are no rows."""

    def __init__(self, name: str, rows: Rows, transaction: Transaction) -> None:
        self._name = name
        self._rows = rows
        self._transaction = transaction
        self._exists = False

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement."""
        return self._rows(sql, values) if self._is_there() else []

    def insert(self, sql: str, values: tuple[Any, ...]) -> int:
        """Runs a statement that adds a row, and returns how many it has added.

        Creates the table if the store lacks it.
        """
        with self._transaction() as cursor:
            create_later_table(cursor, self._name)
            cursor.execute(sql, values)
            return cursor.connection.changes()

    def change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Runs a statement that changes or deletes rows, and returns how many."""
        if not self._is_there():
            return 0
        with self._transaction() as cursor:
            cursor.execute(sql, values)
            return cursor.connection.changes()

    def _is_there(self) -> bool:
        # A table that another process creates is seen at the next call.
        self._exists = self._exists or bool(self._rows(f"{EXISTS} ?", (self._name,)))
        return self._exists


# -- runs ------------------------------------------------------------------------------------------

_ALL_RUNS = "SELECT id, state, data, version FROM runs ORDER BY id"
_RUNS_IN_STATES = "SELECT id, state, data, version FROM runs WHERE state IN ({}) ORDER BY id"
_GET_RUN = "SELECT id, state, data, version FROM runs WHERE id = ?"
_INSERT_RUN = "INSERT OR IGNORE INTO runs (state, data, version, id) VALUES (?, ?, ?, ?)"
_UPDATE_RUN = "UPDATE runs SET state = ?, data = ?, version = ? WHERE id = ? AND version = ?"
_DELETE_RUN = "DELETE FROM runs WHERE id = ?"


class SQLiteRuns:
    """The `RunTable` of a SQLite store."""

    def __init__(self, rows: Rows, transaction: Transaction) -> None:
        self._table = LaterTable("runs", rows, transaction)

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record."""
        values = (run.state, run.data, run.version, run.id)
        if run.version == 1:
            return self._table.insert(_INSERT_RUN, values) == 1
        return self._table.change(_UPDATE_RUN, (*values, run.version - 1)) == 1

    def get(self, id_: str) -> StoredRun | None:
        """Returns a record, or None."""
        rows = self._table.read(_GET_RUN, (id_,))
        return StoredRun(*rows[0]) if rows else None

    def all(self, *states: str) -> list[StoredRun]:
        """Returns the records (in one of these states), in the order of their ids."""
        sql = _RUNS_IN_STATES.format(", ".join("?" * len(states))) if states else _ALL_RUNS
        return [StoredRun(*row) for row in self._table.read(sql, states)]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.change(_DELETE_RUN, (id_,))


# -- logins ----------------------------------------------------------------------------------------

_ALL_SESSIONS = "SELECT id, data, ends FROM sessions"
_GET_SESSION = "SELECT id, data, ends FROM sessions WHERE id = ?"
_PUT_SESSION = "INSERT OR REPLACE INTO sessions (id, data, ends) VALUES (?, ?, ?)"
_EXTEND_SESSION = "UPDATE sessions SET ends = ? WHERE id = ?"
_DELETE_SESSION = "DELETE FROM sessions WHERE id = ?"
_EXPIRE_SESSIONS = "DELETE FROM sessions WHERE ends <= ?"


class SQLiteSessions:
    """The `SessionTable` of a SQLite store."""

    def __init__(self, rows: Rows, transaction: Transaction) -> None:
        self._table = LaterTable("sessions", rows, transaction)

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        self._table.insert(_PUT_SESSION, (session.id, session.data, session.ends))

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        rows = self._table.read(_GET_SESSION, (id_,))
        return StoredSession(*rows[0]) if rows else None

    def all(self) -> list[StoredSession]:
        """Returns all sessions."""
        return [StoredSession(*row) for row in self._table.read(_ALL_SESSIONS)]

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session."""
        self._table.change(_EXTEND_SESSION, (ends, id_))

    def delete(self, id_: bytes) -> None:
        """Deletes a session."""
        self._table.change(_DELETE_SESSION, (id_,))

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended."""
        return self._table.change(_EXPIRE_SESSIONS, (now,))
