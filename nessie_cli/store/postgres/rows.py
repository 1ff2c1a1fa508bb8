"""Rows and lists as parameters of statements, in PostgreSQL's binary form.

psycopg would choose a type by the value: an empty list is text, a small number a smallint. Then one
statement would be prepared many times. A commit sends some thirty lists, mostly of one element:
psycopg's own dumper, which is for lists of any type and depth, took a sixth of the time of a
commit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from nessie_cli.store.records import PackedObject, StoredObject
from nessie_cli.store.rows import Row, pack


class Texts(list[str | None]):
    """A parameter of type text[]."""


class Blobs(list[bytes | None]):
    """A parameter of type bytea[]."""


class Numbers(list[int | None]):
    """A parameter of type bigint[]."""


Types = tuple[type[Texts | Blobs | Numbers], ...]
"""The types of the columns of a table."""

REFRESH_AFTER = 3600
"""The age in seconds from which an existing object that is written again becomes young.

A grace period is longer.
"""

# In the order of ids: two transactions that store the same objects wait for each other, but never
# in a circle. An object that exists is locked, so a sweep that is about to delete it does not.
PUT: LiteralString = f"""WITH stored AS (
        INSERT INTO objects (number, written, kind, id, data)
            SELECT (SELECT nextval('numbers') << 24) + o.ordinal, %s, o.kind, o.id, o.data
            FROM unnest(%s, %s, %s, %s) AS o (id, ordinal, kind, data)
            ON CONFLICT (id) DO UPDATE SET written = excluded.written
                WHERE objects.written < excluded.written - {REFRESH_AFTER}
            RETURNING id, number
    )
    INSERT INTO index_entries (number, entry, id)
        SELECT s.number, e.entry, s.id FROM unnest(%s, %s) AS e (id, entry)
        JOIN stored s ON s.id = e.id ON CONFLICT DO NOTHING"""  # noqa: S608 - fixed texts
"""Stores at most 2^24 objects with their index entries. Parameters: `put_values`."""

ADD_ANCHORS = """INSERT INTO anchors (name, digest, check_sum) SELECT * FROM unnest(%s, %s, %s)
    ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, check_sum = excluded.check_sum"""
ANCHOR_COLUMNS: Types = (Texts, Blobs, Numbers)


def packed(objects: Iterable[StoredObject]) -> list[PackedObject]:
    """Returns objects in their stored form."""
    return [
        PackedObject(
            stored.id, stored.kind, pack(stored.id, stored.kind, stored.data), stored.index
        )
        for stored in objects
    ]


def put_values(now: int, objects: Iterable[PackedObject]) -> tuple[Any, ...]:
    """Returns the parameters of `PUT`. Numbers have the order of `objects`."""
    numbered: dict[bytes, tuple[int, PackedObject]] = {}
    for ordinal, stored in enumerate(objects):
        numbered.setdefault(stored.id, (ordinal, stored))
    rows = [numbered[id_] for id_ in sorted(numbered)]
    entries = [(stored.id, entry) for _, stored in rows for entry in stored.index]
    return (
        now,
        Blobs(stored.id for _, stored in rows),
        Numbers(ordinal for ordinal, _ in rows),
        Numbers(stored.kind for _, stored in rows),
        Blobs(stored.packed for _, stored in rows),
        Blobs(id_ for id_, _ in entries),
        Blobs(entry for _, entry in entries),
    )


def columns(types: Types, rows: Sequence[Row]) -> list[Texts | Blobs | Numbers]:
    """Returns rows, of which there is at least one, as parameters: a list for each column."""
    return [type_(column) for type_, column in zip(types, zip(*rows, strict=True), strict=True)]


def is_storable(*texts: str) -> bool:
    """Returns whether PostgreSQL can store texts: a NUL and half a surrogate pair it cannot."""
    try:
        return all(b"\0" not in text.encode() for text in texts)
    except UnicodeEncodeError:
        return False


# -- the binary form of lists ----------------------------------------------------------------------

_types = psycopg.adapters.types
_empty = struct.Struct("!iii").pack  # no dimensions, no NULL, type of elements
_header = struct.Struct(
    "!iiiii"
).pack  # one dimension, whether there is a NULL, type; length, first index
_length = struct.Struct("!i").pack
_number = struct.Struct("!iq").pack  # its eight bytes, with their length
_NULL = b"\xff\xff\xff\xff"


class _ListDumper(Dumper):
    format = pq.Format.BINARY
    element_oid: int

    def dump(self, obj: list[Any]) -> bytes:
        """Returns a list in PostgreSQL's binary format of an array."""
        if not obj:
            return _empty(0, 0, self.element_oid)
        header = _header(1, None in obj, self.element_oid, len(obj), 1)
        return b"".join((header, *self.elements(obj)))

    def elements(self, items: list[Any]) -> Iterable[bytes]:
        """Returns each element in the binary form of its type, behind its length."""
        return [_NULL if item is None else _length(len(item)) + item for item in items]


class _BlobsDumper(_ListDumper):
    oid, element_oid = _types["bytea"].array_oid, _types["bytea"].oid


class _TextsDumper(_ListDumper):
    oid, element_oid = _types["text"].array_oid, _types["text"].oid

    def elements(self, items: list[str | None]) -> Iterable[bytes]:
        return super().elements([None if item is None else item.encode() for item in items])


class _NumbersDumper(_ListDumper):
    oid, element_oid = _types["int8"].array_oid, _types["int8"].oid

    def elements(self, items: list[int | None]) -> Iterable[bytes]:
        return [_NULL if item is None else _number(8, item) for item in items]


def register(connection: psycopg.Connection[Any]) -> None:
    """Makes a connection use the types of this module."""
    adapters = connection.adapters
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    adapters.register_dumper(Texts, _TextsDumper)
    adapters.register_dumper(Blobs, _BlobsDumper)
    adapters.register_dumper(Numbers, _NumbersDumper)
