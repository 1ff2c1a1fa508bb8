"""The records of pipelines' runs in a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.postgres.pool import PostgresConnection
from nessie_cli.store.postgres.schema import RUNS
from nessie_cli.store.records import StoredRun

_ALL = "SELECT id, state, data, version FROM runs ORDER BY id"
_IN_STATE = "SELECT id, state, data, version FROM runs WHERE state = %s ORDER BY id"
_GET = "SELECT id, state, data, version FROM runs WHERE id = %s"
_INSERT = """INSERT INTO runs (state, data, version, id) VALUES (%s, %s, %s, %s)
    ON CONFLICT (id) DO NOTHING"""
_UPDATE = "UPDATE runs SET state = %s, data = %s, version = %s WHERE id = %s AND version = %s"
_DELETE = "DELETE FROM runs WHERE id = %s"


class PostgresRuns:
    """The `RunTable` of a PostgreSQL store."""

    def __init__(
        self,
        rows: Callable[[LiteralString, Sequence[object]], list[tuple[Any, ...]]],
        written: Callable[[Callable[[PostgresConnection], int]], int],
    ) -> None:
        self._rows = rows
        self._written = written

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record."""
        values: tuple[object, ...] = (run.state, run.data, run.version, run.id)
        if run.version > 1:
            return self._change(_UPDATE, (*values, run.version - 1)) == 1

        def insert(connection: PostgresConnection) -> int:
            try:
                return connection.execute(_INSERT, values).rowcount
            except psycopg.errors.UndefinedTable:
                connection.execute(RUNS.read_bytes())
                return connection.execute(_INSERT, values).rowcount

        return self._written(insert) == 1

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
        self._change(_DELETE, (id_,))

    def _read(self, query: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._rows(query, values)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                return []
            raise

    def _change(self, query: LiteralString, values: Sequence[object]) -> int:
        """Runs a statement, and returns how many rows it has changed."""

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(query, values).rowcount
            except psycopg.errors.UndefinedTable:
                return 0

        return self._written(write)
