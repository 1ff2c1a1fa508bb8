"""The records of pipelines' runs in a SQLite store."""

from __future__ import annotations

from nessie_cli.store.records import StoredRun
from nessie_cli.store.sqlite.later_table import LaterTable, Rows, Transaction

_ALL = "SELECT id, state, data, version FROM runs ORDER BY id"
_IN_STATES = "SELECT id, state, data, version FROM runs WHERE state IN ({}) ORDER BY id"
_GET = "SELECT id, state, data, version FROM runs WHERE id = ?"
_INSERT = "INSERT OR IGNORE INTO runs (state, data, version, id) VALUES (?, ?, ?, ?)"
_UPDATE = "UPDATE runs SET state = ?, data = ?, version = ? WHERE id = ? AND version = ?"
_DELETE = "DELETE FROM runs WHERE id = ?"


class SQLiteRuns:
    """The `RunTable` of a SQLite store."""

    def __init__(self, rows: Rows, transaction: Transaction) -> None:
        self._table = LaterTable("runs", rows, transaction)

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record."""
        values = (run.state, run.data, run.version, run.id)
        if run.version == 1:
            return self._table.insert(_INSERT, values) == 1
        return self._table.change(_UPDATE, (*values, run.version - 1)) == 1

    def get(self, id_: str) -> StoredRun | None:
        """Returns a record, or None."""
        rows = self._table.read(_GET, (id_,))
        return StoredRun(*rows[0]) if rows else None

    def all(self, *states: str) -> list[StoredRun]:
        """Returns the records (in one of these states), in the order of their ids."""
        sql = _IN_STATES.format(", ".join("?" * len(states))) if states else _ALL
        return [StoredRun(*row) for row in self._table.read(sql, states)]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.change(_DELETE, (id_,))
