"""Reads Avro files that anybody may have written, within limits.

A decoder follows the schema of the file. A schema that contains itself, a block that unpacks to
more than memory holds, or an array of values that take no bytes would end the process. While the
decoder reads a row, no other thread runs, except with the bytes of `_Steps`.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import fastavro

Schema = Any
Projection = Callable[[Schema], Schema]
"""Returns the schema to read by from that of the file."""
Reduction = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns the part of a row that is kept."""
_MAGIC = b"Obj\x01"
_SYNC = 16
_LONGEST_NUMBER = 10
MOST_LEVELS = 30
"""The most levels of a schema. Those of manifests have six."""
MOST_SCHEMA, MOST_EMPTY = 1 << 18, 10
"""The most bytes of a schema, and its most fields that take no bytes in a row.

The schema of an unpartitioned table has one such field. One call reads a schema, a megabyte of
records for 0.1 seconds.
"""
MOST_TYPES = 10
"""The most types of a union, which a decoder compares for each value. Manifests have two."""
MOST_SYMBOLS = 100
"""The most symbols of an enum, which a decoder may search for each value.

Manifests have no enums.
"""
MOST_MEMBERS = 1_000
"""The most members of a header, which is read by one call. Manifests have about ten."""


_OBJECT, _VALUE = 200, 50
"""About the bytes of an object without its values, and of a small value."""


class LimitExceeded(ValueError):
    """A file is larger than the limits of its reader. It may be valid."""


class AvroLimits(NamedTuple):
    """The most rows of one file, and its most unpacked bytes.

    One call reads at most `step` bytes of a block: other threads run while a larger row is read,
    and it has at most `row` bytes. `decimal` are the most bytes of a decimal, if they are limited,
    and `vector` those of a deletion vector that manifests name. The rows of a file that are kept
    take at most about `file` bytes, and those of all manifests `memory` bytes, if they are limited.
    """

    rows: int = 10_000_000
    unpacked: int = 512 * 2**20
    step: int = 512 * 2**20
    row: int = 512 * 2**20
    vector: int = 64 * 2**20
    decimal: int | None = None
    file: int | None = None
    memory: int | None = None


USUAL = AvroLimits()
OF_MERGES = AvroLimits(
    rows=100_000,
    unpacked=64 * 2**20,
    step=2**12,
    row=2 * 2**20,
    vector=2**20,
    decimal=16,
    file=256 * 2**20,
    memory=512 * 2**20,
)
"""What a server reads of manifests to combine one table.

A decoder takes up to 5 microseconds for a byte. Iceberg stores a decimal, which has at most 38
digits, in 16 bytes or less; the time that longer ones take grows with the square of their length.
A vector of this size has all positions of 8 million rows, and is read by one call, during which the
server does nothing else.
"""


class AvroFile(NamedTuple):
    """The rows of an Avro file, its schema and the other metadata of its header."""

    rows: list[dict[str, Any]]
    schema: Schema
    metadata: Mapping[str, str]


def read_avro(
    data: bytes,
    limits: AvroLimits = USUAL,
    projected: Projection | None = None,
    reduced: Reduction | None = None,
) -> AvroFile:
    """Returns the rows of an Avro file.

    A value of few bytes can take 200 times as many in memory.

    Raises `LimitExceeded` for a file that is too large, and any other error for a damaged one.
    """
    header = _read_header(data)
    if len(header["avro.schema"]) > MOST_SCHEMA:
        raise ValueError(f"its schema is larger than {MOST_SCHEMA // 2**10} KiB")
    schema = json.loads(header["avro.schema"])
    _check_schema(schema, [], limits.decimal)
    _Shapes().of(schema)
    _check_blocks(data, header, limits)
    reader: Any = fastavro.block_reader(io.BytesIO(data))
    if projected is not None:
        reader = fastavro.block_reader(io.BytesIO(data), projected(reader.writer_schema))
    rows, memory = [], 0
    for block in reader:
        for full in _rows(block, limits):
            row = full if reduced is None else reduced(full)
            rows.append(row)
            if limits.file is not None:
                memory += memory_of(row)
                if memory > limits.file:
                    raise LimitExceeded(f"it takes more than {limits.file // 2**20} MiB of memory")
    metadata = {
        name: value.decode() for name, value in header.items() if not name.startswith("avro.")
    }
    return AvroFile(rows, reader.writer_schema, metadata)


def each_row(data: bytes, limits: AvroLimits) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file that `read_avro` has read, without keeping them."""
    for block in fastavro.block_reader(io.BytesIO(data)):
        yield from _rows(block, limits)


def memory_of(value: Any) -> int:
    """Returns about how many bytes of memory a value of a row takes."""
    if isinstance(value, dict):
        return _OBJECT + sum(map(memory_of, value.values()))
    if isinstance(value, list):
        return _VALUE + sum(map(memory_of, value))
    return _VALUE + (len(value) if isinstance(value, str | bytes) else 0)


def _rows(block: Any, limits: AvroLimits) -> Iterator[dict[str, Any]]:
    """Yields the rows of a block of fastavro. Other threads run between two of them."""
    data = block.bytes_.read()
    if len(data) <= limits.step:
        block.bytes_ = io.BytesIO(data)
        yield from block
        return
    at = 0
    for _ in range(block.num_records):
        row, size = _row(block, data, at, limits)
        at += size
        yield row


def _row(block: Any, data: bytes, at: int, limits: AvroLimits) -> tuple[dict[str, Any], int]:
    """Returns the row at a position of a block, and its size."""
    block.bytes_ = part = io.BytesIO(data[at : at + limits.step])
    # The row may be larger than the part, which then ends within a value, or between two.
    with suppress(Exception):
        row = next(iter(block))
        if part.tell() < limits.step:
            return row, part.tell()
    block.bytes_ = steps = _Steps(data, at, limits.row)
    return next(iter(block)), steps.tell() - at


class _Steps(io.BytesIO):
    """The bytes of a block, which a decoder reads a value at a time.

    Other threads run between two values, because `read` is not a function of C.
    """

    def __init__(self, data: bytes, start: int, most: int) -> None:
        """Takes the position of a row, which may have `most` bytes."""
        super().__init__(data)
        self.seek(start)
        self._most = most
        self._end = start + most

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns the next bytes. Raises `ValueError` behind the most bytes of a row."""
        if self.tell() + (size or 0) > self._end:
            raise LimitExceeded(f"a row has more than {self._most // 2**20} MiB")
        return super().read(size)


def _read_header(data: bytes) -> _Header:
    if not data.startswith(_MAGIC):
        raise ValueError("it is not an Avro file")
    at, members, left = len(_MAGIC), _Header(), MOST_MEMBERS
    while True:
        count, at = _number(data, at)
        if count < 0:
            count = -count
            _, at = _number(data, at)
        left -= count
        if left < 0:
            raise ValueError(f"its header has more than {MOST_MEMBERS:,} members")
        if count == 0:
            members.end = at + _SYNC
            return members
        for _ in range(count):
            name, at = _bytes(data, at)
            members[name.decode()], at = _bytes(data, at)


class _Header(dict[str, bytes]):
    """The members of a header, and the position behind it."""

    end = 0


def _check_schema(schema: Schema, around: Collection[str], decimal: int | None) -> None:
    """Raises `ValueError` for a schema that contains itself, or that takes long to read by.

    It may have many levels, many types in a union, many symbols, or decimals of more than `decimal`
    bytes.
    """
    if len(around) > MOST_LEVELS:
        raise ValueError(f"its schema has more than {MOST_LEVELS} levels")
    if isinstance(schema, str):
        if schema.rpartition(".")[2] in around:
            raise ValueError(f"its schema contains itself ({schema[:100]})")
        return
    if isinstance(schema, list):
        if len(schema) > MOST_TYPES:
            raise ValueError(f"its schema has a union of more than {MOST_TYPES} types")
        for branch in schema:
            _check_schema(branch, [*around, ""], decimal)
        return
    if len(schema.get("symbols") or ()) > MOST_SYMBOLS:
        raise ValueError(f"its schema has an enum of more than {MOST_SYMBOLS} symbols")
    if decimal is not None:
        _check_decimal(schema, decimal)
    inside = [*around, str(schema.get("name", "")).rpartition(".")[2]]
    for part in _parts_of(schema):
        _check_schema(part, inside, decimal)


def _parts_of(schema: Schema) -> Iterator[Schema]:
    """Yields the schemas in one that is an object."""
    for field in schema.get("fields") or ():
        yield field["type"]
    for part in ("items", "values"):
        if part in schema:
            yield schema[part]
    if isinstance(schema.get("type"), dict | list):
        yield schema["type"]


def _check_decimal(schema: Schema, most: int) -> None:
    is_decimal = schema.get("logicalType") == "decimal"
    if is_decimal and (schema["type"] != "fixed" or schema["size"] > most):
        raise ValueError(f"its schema has a decimal that may have more than {most} bytes")


class _Shape(NamedTuple):
    """What the values of a schema are like: without a byte, and with arrays or maps."""

    is_empty: bool
    has_items: bool


class _Shapes:
    """The shapes of the parts of a schema. Raises `ValueError` for values that cost no data.

    A block of a few bytes could have any number of them.
    """

    def __init__(self) -> None:
        self._named = {"null": _Shape(is_empty=True, has_items=False)}
        self._empty_fields = 0

    def of(self, schema: Schema) -> _Shape:
        """Returns the shape of a schema whose names were defined before."""
        if isinstance(schema, str):
            return self._named.get(_last_name(schema), _Shape(is_empty=False, has_items=False))
        if isinstance(schema, list):
            branches = [self.of(part) for part in schema]
            return _Shape(is_empty=False, has_items=any(part.has_items for part in branches))
        kind = schema.get("type")
        if kind in ("array", "map"):
            return self._of_items(self.of(schema["items" if kind == "array" else "values"]))
        if kind in ("record", "error", "fixed"):
            return self._remember(
                schema,
                _Shape(not schema["size"], has_items=False)
                if kind == "fixed"
                else self._of_record(schema),
            )
        return self.of("int" if kind == "enum" else kind)

    def _remember(self, schema: Schema, shape: _Shape) -> _Shape:
        name = _last_name(str(schema.get("name", "")))
        # Names in two namespaces can end alike.
        other = self._named.get(name, shape)
        self._named[name] = _Shape(*map(any, zip(shape, other, strict=True)))
        return shape

    def _of_items(self, items: _Shape) -> _Shape:
        if items.is_empty:
            raise ValueError("its schema has an array of values without a byte")
        if items.has_items:
            raise ValueError("its schema has an array in an array")
        return _Shape(is_empty=False, has_items=True)

    def _of_record(self, schema: Schema) -> _Shape:
        fields = [self.of(field["type"]) for field in schema.get("fields") or ()]
        self._empty_fields += sum(field.is_empty for field in fields)
        if self._empty_fields > MOST_EMPTY:
            raise ValueError(f"its schema has more than {MOST_EMPTY} fields without a byte")
        return _Shape(
            all(field.is_empty for field in fields), any(field.has_items for field in fields)
        )


def _last_name(name: str) -> str:
    """Returns a name without its namespace."""
    return name.rpartition(".")[2]


def _check_blocks(data: bytes, header: _Header, limits: AvroLimits) -> None:
    """Raises `ValueError` if the blocks have too many rows, or unpack to too much."""
    size_of = _SIZES.get(header.get("avro.codec", b"null").decode())
    if size_of is None:
        raise ValueError("its compression is not supported")
    rows = unpacked = 0
    for count, block in _blocks(data, header.end):
        # An empty block takes time, too.
        rows += max(count, 1)
        if not 0 <= rows <= limits.rows:
            raise LimitExceeded(f"it has more than {limits.rows:,} rows")
        unpacked += size_of(block, limits.unpacked - unpacked)
        if unpacked > limits.unpacked:
            raise LimitExceeded(f"it unpacks to more than {limits.unpacked // 2**20} MiB")


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
