"""A table that PostgreSQL stores of this format may lack, because older versions made none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.postgres.pool import PostgresConnection

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
