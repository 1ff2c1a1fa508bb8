"""The tables that a PostgreSQL schema may lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.later_tables import LaterTable
from nessie_cli.store.postgres.pool import PostgresConnection
from nessie_cli.store.postgres.schema import LATER_TABLES


class PostgresLaterTable(LaterTable[Callable[[Callable[[PostgresConnection], int]], int]]):
    """A table of `LATER_TABLES`. The function calls one that writes, again after a lost race."""

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement."""
        return super().read(_of_psycopg(sql), values)

    def insert(self, sql: str, values: tuple[Any, ...]) -> int:
        """Adds a row."""

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(_of_psycopg(sql), values).rowcount
            except psycopg.errors.UndefinedTable:
                connection.execute(LATER_TABLES[self._name].read_bytes())
                return connection.execute(_of_psycopg(sql), values).rowcount

        return self._writer(write)

    def change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Changes or deletes rows."""

        def write(connection: PostgresConnection) -> int:
            try:
                return connection.execute(_of_psycopg(sql), values).rowcount
            except psycopg.errors.UndefinedTable:
                return 0

        return self._writer(write)

    def _is_missing(self, error: StoreUnavailable) -> bool:
        return isinstance(error.__cause__, psycopg.errors.UndefinedTable)


def _of_psycopg(sql: str) -> str:
    return sql.replace("?", "%s")
