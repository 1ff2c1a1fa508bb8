"""A table that SQLite stores of this format may lack, because older versions made none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from nessie_cli.store.sqlite.schema import LATER_TABLES

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = ?"

Rows = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement that reads, and returns its rows."""
Transaction = Callable[[], AbstractContextManager[apsw.Cursor]]
"""Opens a transaction that writes."""


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
        create = LATER_TABLES[self._name].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        with self._transaction() as cursor:
            cursor.execute(create)
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
        self._exists = self._exists or bool(self._rows(_EXISTS, (self._name,)))
        return self._exists
