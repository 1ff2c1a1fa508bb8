"""Converts rows of a store to values. A wrong checksum of a row raises `DamagedRow`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nessie_cli.store.codec import entry_digest, row_check, unpack
from nessie_cli.store.records import (
    DamagedId,
    Move,
    ReflogRow,
    Request,
    Settings,
    StoredObject,
    StoredReference,
)

Row = tuple[Any, ...]

REFERENCE = "SELECT name, kind, target, newest, check_sum FROM refs"
REFLOG = """SELECT number, name, kind, before, after, time, who, operation, message, request_id,
previous, digest FROM reflog"""
ANCHOR = "SELECT name, digest, check_sum FROM anchors"
SETTINGS = "SELECT name, value, version, newest, check_sum FROM settings"
REQUEST = "SELECT id, caller, digest, result, time, check_sum FROM requests"
BASIS = """SELECT 0, max(version), NULL, NULL, NULL, NULL, NULL FROM settings
UNION ALL SELECT 1, name, kind, target, newest, check_sum, NULL FROM refs WHERE name = ?
UNION ALL SELECT 2, id, caller, digest, result, time, check_sum FROM requests WHERE id = ?"""
"""The settings version, a reference and a request, in one statement."""


_MOST_SHOWN = 100
"""The most characters or bytes of a name in a message. References have up to 1,024."""


class DamagedRow(Exception):
    """A row whose checksum is wrong."""


def reference_of(row: Row) -> StoredReference:
    """Returns the value of a row of `REFERENCE`."""
    _check("refs", row, row[0])
    return StoredReference(*row[:3])


def reflog_row_of(row: Row) -> ReflogRow:
    """Returns the value of a row of `REFLOG`."""
    *fields, previous, digest = row
    try:
        valid = entry_digest(previous, *fields) == digest
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise DamagedRow(f"table reflog, row {shown(row[0])}: its checksum is wrong")
    return ReflogRow(row[0], Move(*fields[1:]))


def anchor_of(row: Row) -> tuple[str, bytes]:
    """Returns the name of a reference and the digest of its last expired entry."""
    _check("anchors", row, row[0])
    return row[0], row[1]


def request_of(row: Row) -> Request:
    """Returns the value of a row of `REQUEST`."""
    _check("requests", row, row[0])
    return Request(*row[:-1])


def settings_of(rows: Iterable[Row]) -> Settings:
    """Returns the value of the rows of `SETTINGS`.

    One without a value keeps a removal's version.
    """
    values, newest = {}, 0
    for row in rows:
        _check("settings", row, row[0])
        name, value, version, *_ = row
        newest = max(newest, version)
        if value is not None:
            values[name] = value
    return Settings(values, newest)


def with_check(*fields: str | bytes | int | None) -> Row:
    """Returns the fields of a row followed by their checksum."""
    return (*fields, row_check(*fields))


def checked_row(table: str, row: Row) -> Row:
    """Returns the fields of a row without its checksum, after verifying it."""
    _check(table, row, row[0])
    return row[:-1]


def is_valid(row: Row) -> bool:
    """Returns whether the checksum at the end of a row is right."""
    try:
        return bool(row_check(*row[:-1]) == row[-1])
    except (TypeError, ValueError):
        return False


def shown(name: object) -> str:
    """Returns a name in a store, which may have any size and type, for a message."""
    if isinstance(name, (str, bytes)) and len(name) > _MOST_SHOWN:
        return f"{name[:_MOST_SHOWN]!r}..."
    return repr(name)


def _check(table: str, row: Row, name: object) -> None:
    if not is_valid(row):
        raise DamagedRow(f"table {table}, row {shown(name)}: its checksum is wrong")


def check_order(
    table: str, places: Iterable[Any], last: Any = None, *, descending: bool = False
) -> None:
    """Raises `DamagedRow` unless places grow, or fall if `descending`, from `last` on.

    A damaged tree of a file may be in no order. Reading it page by page would never end.
    """
    for place in places:
        try:
            in_order = last is None or (place < last if descending else place > last)
        except TypeError:
            in_order = False
        if not in_order:
            raise DamagedRow(f"table {table}, row {shown(place)}: out of order")
        last = place


def check_types(table: str, row: Row, types: Sequence[type]) -> Row:
    """Returns a row. Raises `DamagedRow` unless its fields have these types.

    SQLite stores any type in any column. Rows with a checksum need no other check.
    """
    if not all(map(isinstance, row, types)):
        raise DamagedRow(f"table {table}, row {shown(row[0])}: its fields have the wrong types")
    return row


def index_row_of(row: Row) -> tuple[bytes, int, bytes]:
    """Returns an index entry with the number and the id of its object."""
    entry, number, id_ = check_types("object_index", row, (bytes, int, bytes))
    return entry, number, id_


def object_of(row: Sequence[Any]) -> StoredObject | DamagedId:
    """Returns an object from its row: id, kind, packed bytes."""
    id_, kind, blob = row
    try:
        return StoredObject(id_, kind, unpack(id_, kind, blob))
    except (ValueError, TypeError, OverflowError) as error:
        return DamagedId(id_ or b"", kind, str(error))
