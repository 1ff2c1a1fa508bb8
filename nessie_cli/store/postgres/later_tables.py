"""The tables that stores may lack, because older versions of this format made none.

They have the records of pipelines' runs, and the logins of browsers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.postgres.pool import PostgresConnection
from nessie_cli.store.postgres.schema import RUNS, SESSIONS
from nessie_cli.store.records import StoredRun, StoredSession

Rows = Callable[[LiteralString, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a statement that reads, and returns its rows."""
Written = Callable[[Callable[[PostgresConnection], int]], int]
"""Calls a function that writes, again after a lost race, and returns its result."""


class LaterTable:
    """The table that a file of statements creates. Without it, there are no rows."""

    def __init__(self, statements: Path, rows: Rows, written: Written) -> None:
        self._statements = statements
        self._rows = rows
        self._written = written

    def read(self, query: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement."""
        try:
            return self._rows(query, values)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                return []
            raise

    def insert(self, query: LiteralString, values: Sequence[object]) -> int:
        """Runs a statement that adds a row, and returns how many it has added.

        Creates the table if the store lacks it.
        """

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(query, values).rowcount
            except psycopg.errors.UndefinedTable:
                connection.execute(self._statements.read_bytes())
                return connection.execute(query, values).rowcount

        return self._written(write)

    def change(self, query: LiteralString, values: Sequence[object]) -> int:
        """Runs a statement that changes or deletes rows, and returns how many."""

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(query, values).rowcount
            except psycopg.errors.UndefinedTable:
                return 0

        return self._written(write)


# -- runs ------------------------------------------------------------------------------------------

_ALL_RUNS = "SELECT id, state, data, version FROM runs ORDER BY id"
_RUNS_IN_STATES = "SELECT id, state, data, version FROM runs WHERE state = ANY(%s) ORDER BY id"
_GET_RUN = "SELECT id, state, data, version FROM runs WHERE id = %s"
_INSERT_RUN = """INSERT INTO runs (state, data, version, id) VALUES (%s, %s, %s, %s)
    ON CONFLICT (id) DO NOTHING"""
_UPDATE_RUN = "UPDATE runs SET state = %s, data = %s, version = %s WHERE id = %s AND version = %s"
_DELETE_RUN = "DELETE FROM runs WHERE id = %s"


class PostgresRuns:
    """The `RunTable` of a PostgreSQL store."""

    def __init__(self, rows: Rows, written: Written) -> None:
        self._table = LaterTable(RUNS, rows, written)

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
        table = self._table
        rows = table.read(_RUNS_IN_STATES, (list(states),)) if states else table.read(_ALL_RUNS)
        return [StoredRun(*row) for row in rows]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.change(_DELETE_RUN, (id_,))


# -- logins ----------------------------------------------------------------------------------------

_ALL_SESSIONS = "SELECT id, data, ends FROM sessions"
_GET_SESSION = "SELECT id, data, ends FROM sessions WHERE id = %s"
_PUT_SESSION = """INSERT INTO sessions (id, data, ends) VALUES (%s, %s, %s)
    ON CONFLICT (id) DO UPDATE SET data = excluded.data, ends = excluded.ends"""
_EXTEND_SESSION = "UPDATE sessions SET ends = %s WHERE id = %s"
_DELETE_SESSION = "DELETE FROM sessions WHERE id = %s"
_EXPIRE_SESSIONS = "DELETE FROM sessions WHERE ends <= %s"


class PostgresSessions:
    """The `SessionTable` of a PostgreSQL store."""

    def __init__(self, rows: Rows, written: Written) -> None:
        self._table = LaterTable(SESSIONS, rows, written)

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
