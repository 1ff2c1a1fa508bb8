"""The text of metadata files: its limits, and its JSON, read as a whole or only at its head.

A file may have tens of megabytes. No call on all of it takes long, because no other thread of a
server runs meanwhile.
"""

from __future__ import annotations

import zlib
from codecs import iterdecode
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.wire.large_json import MOST_VALUES, count_values, decode, steps

MAX_BYTES = 64 * 2**20
"""The largest metadata file, as it is and decompressed.

With ten thousand snapshots one has about 10 MB.
"""
MAX_DEPTH = 200
"""Levels of JSON. A level of a nested column takes three."""
MOST_VALUES_OF_ITEM = 500_000
"""The most JSON values of one schema, snapshot or other item. A column has about five."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Head(Struct, frozen=True, rename="kebab"):
    """The members of metadata that are read without the others, which takes a tenth of the time."""

    format_version: int
    location: str | None = None
    table_uuid: str | None = None
    current_schema_id: int | None = None
    default_spec_id: int | None = None
    default_sort_order_id: int | None = None
    current_snapshot_id: int | None = None
    current_version_id: int | None = None


_head = msgspec.json.Decoder(Head).decode


def head_of(text: bytes, location: str) -> Head:
    """Returns the head of a metadata file.

    The other members are valid JSON in UTF-8, of any kind. Raises `InvalidInput`.
    """
    try:
        for _ in iterdecode(steps(text), "utf-8"):
            pass
        return _head(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_metadata(location) from None
    except RecursionError:
        raise _too_deep(location) from None


def parsed(text: bytes, location: str) -> Document:
    """Returns the document of a metadata file. Raises `InvalidInput` if it exceeds a limit."""
    if len(text) > MOST_VALUES and count_values(text) > MOST_VALUES:
        raise InvalidInput(f"{location} has more than {MOST_VALUES:,} JSON values")
    try:
        document = decode(text)
    except RecursionError:
        raise _too_deep(location) from None
    except ValueError:
        document = None
    if not isinstance(document, dict) or "format-version" not in document:
        raise _no_metadata(location)
    for member in document.values():
        for item in _items_of(member):
            if type(item) in (dict, list):
                _check_item(item, location)
    return document


def plain(data: bytes, location: str) -> bytes:
    """Returns the text of a file that may be compressed by gzip. Raises `InvalidInput`."""
    if len(data) > MAX_BYTES:
        raise too_large(location)
    if not data.startswith(_GZIP):
        return data
    unpacking = zlib.decompressobj(_GZIP_WINDOW)
    try:
        text = unpacking.decompress(data, MAX_BYTES + 1)
    except zlib.error:
        raise InvalidInput(f"{location}: its compressed data is damaged") from None
    if len(text) > MAX_BYTES:
        raise too_large(location)
    if not unpacking.eof:
        raise InvalidInput(f"{location}: its compressed data is cut off")
    return text


def too_large(location: str) -> InvalidInput:
    """Returns the error for a metadata file of more than `MAX_BYTES`."""
    return InvalidInput(f"{location} is larger than {MAX_BYTES // 2**20} MiB")


def _items_of(member: Any) -> Iterable[Any]:
    if isinstance(member, dict):
        return member.values()
    return member if isinstance(member, list) else ()


def _check_item(item: Any, location: str) -> None:
    level, count = [item], 0
    for _ in range(MAX_DEPTH - 2):
        count += sum(map(len, level))
        if count > MOST_VALUES_OF_ITEM:
            raise InvalidInput(
                f"{location}: one schema, snapshot or other item has more than"
                f" {MOST_VALUES_OF_ITEM:,} JSON values"
            )
        level = [
            value
            for parent in level
            for value in (parent.values() if type(parent) is dict else parent)
            if type(value) in (dict, list)
        ]
        if not level:
            return
    raise _too_deep(location)


def _no_metadata(location: str) -> InvalidInput:
    return InvalidInput(f"{location} is not an Iceberg metadata file")


def _too_deep(location: str) -> InvalidInput:
    return InvalidInput(f"{location}: its JSON has more than {MAX_DEPTH} levels")
