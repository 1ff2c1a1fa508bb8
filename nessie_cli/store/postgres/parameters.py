"""Parameters of statements with fixed types, in PostgreSQL's binary form.

psycopg would choose a type by the value: an empty list is text, a small number a smallint. Then one
statement would be prepared many times. A commit sends some thirty lists, mostly of one element:
psycopg's own dumper, which is for lists of any type and depth, took a sixth of the time of a
commit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

_types = psycopg.adapters.types
_empty = struct.Struct("!iii").pack  # no dimensions, no NULL, type of elements
_header = struct.Struct(
    "!iiiii"
).pack  # one dimension, whether there is a NULL, type; length, first index
_length = struct.Struct("!i").pack
_number = struct.Struct("!iq").pack  # its eight bytes, with their length
_NULL = b"\xff\xff\xff\xff"


class Texts(list[str | None]):
    """A parameter of type text[]."""


class Blobs(list[bytes | None]):
    """A parameter of type bytea[]."""


class Numbers(list[int | None]):
    """A parameter of type bigint[]."""


class _ListDumper(Dumper):
    format = pq.Format.BINARY
    element_oid: int

    def dump(self, obj: list[Any]) -> bytes:
        """See `psycopg.adapt.Dumper`."""
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
