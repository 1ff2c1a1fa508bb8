"""Checks the schema of a SQLite store when it is opened, before any of its rows is used."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from nessie_cli.errors import DamagedObject

_SCHEMA = r"SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'"


def check_tables(cursor: apsw.Cursor, path: str, statements: Mapping[str, str]) -> None:
    """Raises `DamagedObject` unless a file has the tables and indexes of these statements.

    It may have other tables, but neither views nor triggers: they contain statements that the
    author of the file chose.
    """
    if reason := _difference(cursor, statements):
        raise DamagedObject(
            f"store {path}: this file is not a complete nessie store: {reason}",
            hint="restore it from a backup",
        )


def _difference(cursor: apsw.Cursor, statements: Mapping[str, str]) -> str:
    present = {
        str(name): (str(type_), str(sql)) for type_, name, sql in cursor.execute(_SCHEMA).fetchall()
    }
    for name, statement in statements.items():
        type_, sql = present.get(name, ("", ""))
        if type_ not in ("table", "index"):
            return f"it has no table or index {name}"
        if _normal(sql) != _normal(statement):
            return f"its {type_} {name} differs from that of a nessie store"
    for name, (type_, _) in present.items():
        if type_ not in ("table", "index"):
            return f"it has the {type_} {name}, which no nessie store has"
    return ""


def _normal(statement: str) -> str:
    """Returns a statement without the spaces and quotes that other programs may change."""
    return "".join(statement.split()).replace('"', "")
