"""Reads Avro files that anybody may have written, within limits.

A decoder follows the schema of the file. A schema that contains itself, or a block that unpacks to
more than memory holds, would end the process.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import fastavro

Schema = Any
Projection = Callable[[Schema], Schema]
"""Returns the schema to read by from that of the file."""
_MAGIC = b"Obj\x01"
_SYNC = 16
_LONGEST_NUMBER = 10
MOST_LEVELS = 30
"""The most levels of a schema. Those of manifests have six."""


class AvroLimits(NamedTuple):
    """The most rows and the most unpacked bytes of one file."""

    rows: int = 10_000_000
    unpacked: int = 512 * 2**20


USUAL = AvroLimits()
OF_MERGES = AvroLimits(100_000, 64 * 2**20)
"""What a server reads of manifests to combine one table."""


class AvroFile(NamedTuple):
    """The rows of an Avro file, its schema and the other metadata of its header."""

    rows: list[dict[str, Any]]
    schema: Schema
    metadata: Mapping[str, str]


def read_avro(
    data: bytes,
    limits: AvroLimits = USUAL,
    projected: Projection | None = None,
) -> AvroFile:
    """Returns the rows of an Avro file.

    Raises `ValueError` for a file that exceeds a limit, and any error of the decoder for a damaged
    one.
    """
    header = _read_header(data)
    schema = json.loads(header["avro.schema"])
    _check_schema(schema, [])
    _check_blocks(data, header, limits)
    reader: Any = fastavro.reader(io.BytesIO(data))
    if projected is not None:
        reader = fastavro.reader(io.BytesIO(data), projected(reader.writer_schema))
    # A comprehension: other threads run between two rows.
    rows = [row for row in reader]  # noqa: C416
    metadata = {
        name: value.decode() for name, value in header.items() if not name.startswith("avro.")
    }
    return AvroFile(rows, reader.writer_schema, metadata)


def _read_header(data: bytes) -> _Header:
    if not data.startswith(_MAGIC):
        raise ValueError("it is not an Avro file")
    at, members = len(_MAGIC), _Header()
    while True:
        count, at = _number(data, at)
        if count < 0:
            count = -count
            _, at = _number(data, at)
        if count == 0:
            members.end = at + _SYNC
            return members
        for _ in range(count):
            name, at = _bytes(data, at)
            members[name.decode()], at = _bytes(data, at)


class _Header(dict[str, bytes]):
    """The members of a header, and the position behind it."""

    end = 0


def _check_schema(schema: Schema, around: Collection[str]) -> None:
    """Raises `ValueError` for a schema that contains itself or has many levels."""
    if len(around) > MOST_LEVELS:
        raise ValueError(f"its schema has more than {MOST_LEVELS} levels")
    if isinstance(schema, str):
        if schema.rpartition(".")[2] in around:
            raise ValueError(f"its schema contains itself ({schema[:100]})")
        return
    if isinstance(schema, list):
        for branch in schema:
            _check_schema(branch, [*around, ""])
        return
    inside = [*around, str(schema.get("name", "")).rpartition(".")[2]]
    for field in schema.get("fields") or ():
        _check_schema(field["type"], inside)
    for part in ("items", "values"):
        if part in schema:
            _check_schema(schema[part], inside)
    if isinstance(schema.get("type"), dict | list):
        _check_schema(schema["type"], inside)


def _check_blocks(data: bytes, header: _Header, limits: AvroLimits) -> None:
    """Raises `ValueError` if the blocks have too many rows, or unpack to too much."""
    size_of = _SIZES.get(header.get("avro.codec", b"null").decode())
    if size_of is None:
        raise ValueError("its compression is not supported")
    rows = unpacked = 0
    for count, block in _blocks(data, header.end):
        rows += count
        if not 0 <= rows <= limits.rows:
            raise ValueError(f"it has more than {limits.rows:,} rows")
        unpacked += size_of(block, limits.unpacked - unpacked)
        if unpacked > limits.unpacked:
            raise ValueError(f"it unpacks to more than {limits.unpacked // 2**20} MiB")


def _blocks(data: bytes, at: int) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(data)
    while at < len(data):
        count, at = _number(data, at)
        size, at = _number(data, at)
        if count < 0 or size < 0 or at + size > len(data):
            raise ValueError("a block is cut off")
        yield count, view[at : at + size]
        at += size + _SYNC


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Returns the number at a position, and the position behind it."""
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_NUMBER]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that another byte follows
            return (value >> 1) ^ -(value & 1), at + index + 1
    raise ValueError("a number is cut off")


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError("a text is cut off")
    return data[at : at + size], at + size


# -- the size of an unpacked block, at most one more than a maximum --------------------------------


def _of_deflate(block: memoryview, most: int) -> int:
    return len(zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, most + 1))


def _of_bzip2(block: memoryview, most: int) -> int:
    return len(bz2.BZ2Decompressor().decompress(block, most + 1))


def _of_xz(block: memoryview, most: int) -> int:
    return len(lzma.LZMADecompressor().decompress(block, most + 1))


def _of_zstandard(block: memoryview, most: int) -> int:
    # The library that the decoder uses, too, if it is there.
    zstd: Any = import_module("backports.zstd")
    return len(zstd.ZstdDecompressor().decompress(block, most + 1))


def _of_snappy(block: memoryview, most: int) -> int:
    """Returns the size that its first number says: the decoder compares it."""
    size = 0
    for index, byte in enumerate(block[:_LONGEST_NUMBER]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - see `_number`
            break
    return min(size, most + 1)


def _of_null(block: memoryview, most: int) -> int:
    return min(len(block), most + 1)


_SIZES: Mapping[str, Callable[[memoryview, int], int]] = {
    "null": _of_null,
    "deflate": _of_deflate,
    "bzip2": _of_bzip2,
    "xz": _of_xz,
    "zstandard": _of_zstandard,
    "snappy": _of_snappy,
}
