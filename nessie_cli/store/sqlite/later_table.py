"""A table that SQLite stores of this format may lack, because older versions made none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

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
