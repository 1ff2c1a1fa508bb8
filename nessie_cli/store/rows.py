"""Converts rows of a store to values. A wrong checksum of a row raises `DamagedRow`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from types import UnionType
from typing import Any

from nessie_cli.errors import DamagedObject
from nessie_cli.model import ReferenceType, ReflogType
from nessie_cli.store.codec import LONGEST_OBJECT, entry_digest, row_check, unpack
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

_TYPES: Mapping[str, tuple[type | UnionType, ...]] = {
    "refs": (str, str, bytes, bytes),
    "reflog": (int, str, str, *[bytes | None] * 2, int, *[str] * 4, bytes, bytes),
    "anchors": (str, bytes),
    "settings": (str, str | None, int, bytes),
    "requests": (str, str, bytes, bytes, int),
}
"""The types of columns before the checksum."""
_MICROSECONDS = range(253_402_300_800 * 10**6)
"""The times until the end of the year 9999, the last one that Python has."""
_VALUES: Mapping[str, Mapping[int, Container[object]]] = {
    "refs": {1: tuple(ReferenceType)},
    "reflog": {2: tuple(ReflogType), 5: _MICROSECONDS},
    "requests": {4: _MICROSECONDS},
}
"""The values of columns, by place, whose types have others."""

_MOST_EXPANDED = 1 << 30
_LARGEST_RATIO = 100
"""Objects that are read together may take a gigabyte, or this many times their packed bytes."""

_MOST_SHOWN = 100
"""The most characters or bytes of a name in a message. References have up to 1,024."""


class DamagedRow(Exception):
    """A row whose checksum or fields are wrong."""


def reference_of(row: Row) -> StoredReference:
    """Returns the value of a row of `REFERENCE`."""
    return StoredReference(*checked_row("refs", row)[:3])


def reflog_row_of(row: Row) -> ReflogRow:
    """Returns the value of a row of `REFLOG`."""
    *fields, previous, digest = row
    try:
        valid = entry_digest(previous, *fields) == digest
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise DamagedRow(f"table reflog, row {shown(row[0])}: its checksum is wrong")
    check_fields("reflog", row)
    return ReflogRow(row[0], Move(*fields[1:]))


def anchor_of(row: Row) -> tuple[str, bytes]:
    """Returns the name of a reference and the digest of its last expired entry."""
    name, digest = checked_row("anchors", row)
    return name, digest


def request_of(row: Row) -> Request:
    """Returns the value of a row of `REQUEST`."""
    return Request(*checked_row("requests", row))


def settings_of(rows: Iterable[Row]) -> Settings:
    """Returns the value of the rows of `SETTINGS`."""
    return settings_of_fields(checked_row("settings", row) for row in rows)


def settings_of_fields(rows: Iterable[Row]) -> Settings:
    """Returns the value of verified rows of settings.

    One without a value keeps a removal's version.
    """
    values, newest = {}, 0
    for name, value, version, *_ in rows:
        newest = max(newest, version)
        if value is not None:
            values[name] = value
    return Settings(values, newest)


def with_check(table: str, *fields: str | bytes | int | None) -> Row:
    """Returns the fields of a row of a table, followed by their checksum."""
    return (*fields, row_check(table, fields))


def checked_row(table: str, row: Row) -> Row:
    """Returns the fields of a row without its checksum, after verifying them."""
    *fields, check_sum = row
    if row_check(table, fields) != check_sum:
        raise DamagedRow(f"table {table}, row {shown(row[0])}: its checksum is wrong")
    return check_fields(table, tuple(fields))


def check_fields(table: str, row: Row) -> Row:
    """Returns a row. Raises `DamagedRow` unless its fields are values of their columns.

    A file from a stranger may have any values, with right checksums.
    """
    check_types(table, row, _TYPES[table])
    for place, values in _VALUES.get(table, {}).items():
        if row[place] not in values:
            raise DamagedRow(
                f"table {table}, row {shown(row[0])}: {shown(row[place])} is not valid there"
            )
    return row


def shown(name: object) -> str:
    """Returns a name in a store, which may have any size and type, for a message."""
    if isinstance(name, (str, bytes)) and len(name) > _MOST_SHOWN:
        return f"{name[:_MOST_SHOWN]!r}..."
    return repr(name)


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


def check_types(table: str, row: Row, types: Sequence[type | UnionType]) -> Row:
    """Returns a row. Raises `DamagedRow` unless its fields have these types.

    SQLite stores any type in any column.
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


def objects_of(url: str, rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Returns the bytes of objects that are read together, by id, from the rows of `object_of`.

    Raises `DamagedObject`, also if a file from a stranger would expand without a limit.
    """
    objects: dict[bytes, bytes] = {}
    size = packed = 0
    for row in rows:
        one = object_of(row)
        if isinstance(one, StoredObject):
            objects[one.id] = one.data
            size += len(one.data)
            packed += len(row[2])
            if size <= max(_MOST_EXPANDED, _LARGEST_RATIO * packed):
                continue
            reason = f"with others it takes more than {_MOST_EXPANDED >> 30} GiB decompressed"
        else:
            reason = one.reason
        name = row[0].hex()
        raise DamagedObject(f"store {url}: object {name} is damaged: {reason}", name)
    return objects


def read_ahead_of(rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Returns undamaged objects by id, until they take more bytes than the largest one may.

    The error about a damaged object is raised when it is needed.
    """
    objects: dict[bytes, bytes] = {}
    size = 0
    for one in map(object_of, rows):
        if isinstance(one, StoredObject):
            size += len(one.data)
            if size > LONGEST_OBJECT:
                break
            objects[one.id] = one.data
    return objects
