"""The tables that a SQLite file may lack."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.later_tables import LaterTable
from nessie_cli.store.sqlite.schema import LATER_TABLES

EXISTS = "SELECT 1 FROM sqlite_schema WHERE name ="
"""The beginning of the statement that reports whether a table exists; its name follows."""


def create_later_table(cursor: apsw.Cursor, name: str) -> None:
    """Creates a table of `LATER_TABLES`, unless the store has it."""
    cursor.execute(LATER_TABLES[name].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))


class SQLiteLaterTable(LaterTable[Callable[[], AbstractContextManager[apsw.Cursor]]]):
    """A table of `LATER_TABLES`. The function opens a transaction that writes."""

    def insert(self, sql: str, values: tuple[Any, ...]) -> int:
        """Adds a row."""
        with self._writer() as cursor:
            create_later_table(cursor, self._name)
            cursor.execute(sql, values)
            return cursor.connection.changes()

    def change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Changes or deletes rows."""
        with self._writer() as cursor:
            if not cursor.execute(f"{EXISTS} ?", (self._name,)).fetchall():
                return 0
            cursor.execute(sql, values)
            return cursor.connection.changes()

    def _is_missing(self, error: StoreUnavailable) -> bool:  # noqa: ARG002 - it names no table
        return not self._rows(f"{EXISTS} ?", (self._name,))
