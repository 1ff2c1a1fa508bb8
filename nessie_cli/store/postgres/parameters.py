"""Parameters of statements, each with one type whatever its value is, in PostgreSQL's binary form.

psycopg would choose a type by the value: an empty list is text, a small number a smallint. Then one
statement would be prepared many times.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

_types = psycopg.adapters.types


class Texts(list[str | None]):
    """A parameter of type text[]."""


class Blobs(list[bytes | None]):
    """A parameter of type bytea[]."""


class Numbers(list[int | None]):
    """A parameter of type bigint[]."""


class _TextsDumper(ListBinaryDumper):
    oid, element_oid = _types["text"].array_oid, _types["text"].oid


class _BlobsDumper(ListBinaryDumper):
    oid, element_oid = _types["bytea"].array_oid, _types["bytea"].oid


class _NumbersDumper(ListBinaryDumper):
    oid, element_oid = _types["int8"].array_oid, _types["int8"].oid


def register(connection: psycopg.Connection[Any]) -> None:
    """Makes a connection use the types of this module."""
    adapters = connection.adapters
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    adapters.register_dumper(Texts, _TextsDumper)
    adapters.register_dumper(Blobs, _BlobsDumper)
    adapters.register_dumper(Numbers, _NumbersDumper)
