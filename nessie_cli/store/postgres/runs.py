"""The records of pipelines' runs in a PostgreSQL store."""

from __future__ import annotations

from nessie_cli.store.postgres.later_table import LaterTable, Rows, Written
from nessie_cli.store.postgres.schema import RUNS
from nessie_cli.store.records import StoredRun

_ALL = "SELECT id, state, data, version FROM runs ORDER BY id"
_IN_STATES = "SELECT id, state, data, version FROM runs WHERE state = ANY(%s) ORDER BY id"
_GET = "SELECT id, state, data, version FROM runs WHERE id = %s"
_INSERT = """INSERT INTO runs (state, data, version, id) VALUES (%s, %s, %s, %s)
    ON CONFLICT (id) DO NOTHING"""
_UPDATE = "UPDATE runs SET state = %s, data = %s, version = %s WHERE id = %s AND version = %s"
_DELETE = "DELETE FROM runs WHERE id = %s"


class PostgresRuns:
    """The `RunTable` of a PostgreSQL store."""

    def __init__(self, rows: Rows, written: Written) -> None:
        self._table = LaterTable(RUNS, rows, written)

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
        table = self._table
        rows = table.read(_IN_STATES, (list(states),)) if states else table.read(_ALL)
        return [StoredRun(*row) for row in rows]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.change(_DELETE, (id_,))
