"""Checks the schema of a SQLite store when it is opened, before any of its rows is used."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from nessie_cli.errors import DamagedObject

_SCHEMA = r"SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'"


def check_tables(cursor: apsw.Cursor, path: str, names: Iterable[str]) -> None:
    """Raises `DamagedObject` if the file lacks a table or index, or has a view or trigger.

    A view or trigger contains statements that the author of the file chose.
    """
    present = {str(name): str(type_) for type_, name in cursor.execute(_SCHEMA)}
    absent = [name for name in names if present.get(name) not in ("table", "index")]
    foreign = [name for name, type_ in present.items() if type_ not in ("table", "index")]
    if absent or foreign:
        reason = (
            f"it has no table or index {absent[0]}"
            if absent
            else f"it has the {present[foreign[0]]} {foreign[0]}, which no nessie store has"
        )
        raise DamagedObject(
            f"store {path}: this file is not a complete nessie store: {reason}. Hint: restore it"
            " from a backup"
        )
