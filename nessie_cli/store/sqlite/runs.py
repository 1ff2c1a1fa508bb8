"""The records of pipelines' runs in a SQLite store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from nessie_cli.store.records import StoredRun
from nessie_cli.store.sqlite.schema import LATER_TABLES

_CREATE = LATER_TABLES["runs"].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = 'runs'"
_ALL = "SELECT id, state, data, version FROM runs ORDER BY id"
_IN_STATE = "SELECT id, state, data, version FROM runs WHERE state = ? ORDER BY id"
_GET = "SELECT id, state, data, version FROM runs WHERE id = ?"
_INSERT = "INSERT OR IGNORE INTO runs (state, data, version, id) VALUES (?, ?, ?, ?)"
_UPDATE = "UPDATE runs SET state = ?, data = ?, version = ? WHERE id = ? AND version = ?"
_DELETE = "DELETE FROM runs WHERE id = ?"


class SQLiteRuns:
    """The `RunTable` of a SQLite store, by its functions that run statements."""

    def __init__(
        self,
        rows: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]],
        transaction: Callable[[], AbstractContextManager[apsw.Cursor]],
    ) -> None:
        self._rows = rows
        self._transaction = transaction
        self._exists = False

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record."""
        values = (run.state, run.data, run.version, run.id)
        with self._transaction() as cursor:
            cursor.execute(_CREATE)
            if run.version == 1:
                cursor.execute(_INSERT, values)
            else:
                cursor.execute(_UPDATE, (*values, run.version - 1))
            return cursor.connection.changes() == 1

    def get(self, id_: str) -> StoredRun | None:
        """Returns a record, or None."""
        rows = self._read(_GET, (id_,))
        return StoredRun(*rows[0]) if rows else None

    def all(self, state: str | None = None) -> list[StoredRun]:
        """Returns the records (in a state), in the order of their ids."""
        rows = self._read(_ALL) if state is None else self._read(_IN_STATE, (state,))
        return [StoredRun(*row) for row in rows]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        if self._is_there():
            with self._transaction() as cursor:
                cursor.execute(_DELETE, (id_,))

    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._rows(sql, values) if self._is_there() else []

    def _is_there(self) -> bool:
        # A table that another process creates is seen at the next call.
        self._exists = self._exists or bool(self._rows(_EXISTS, ()))
        return self._exists
