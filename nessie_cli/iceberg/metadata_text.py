"""The text and JSON of metadata files. The command line and the server read them with it.

Texts are read as Iceberg reads them: Java's `GZIPInputStream` joins the members of a compressed
file and ignores what follows them, and Jackson skips a byte order mark. UTF-16 is refused.

A file may have tens of megabytes. No call on all of it takes long, because no other thread of a
server runs meanwhile.
"""

from __future__ import annotations

import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.large_json import decode

MAX_DEPTH = 200
"""Levels of JSON. A level of a nested column takes three."""
MOST_VALUES_OF_ITEM = 500_000
"""The most JSON values of one schema, snapshot or other item. A column has about five."""
MOST_MEMBERS = 1_000
"""The most gzip members of a file; programs that compress in blocks make one per 64 KiB."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_FED = 1 << 16


class TooLarge(InvalidInput):
    """The text of a file has more bytes than the limit."""


class NoJson(InvalidInput):
    """A text is not JSON."""


def unpacked(data: bytes, most: int) -> bytes:
    """Returns the text of a file, which may be compressed by gzip and has at most `most` bytes.

    Raises `TooLarge`, and `InvalidInput` if the compressed data is damaged.
    """
    text = _decompressed(data, most) if data.startswith(_GZIP) else data
    if len(text) > most:
        raise TooLarge(f"larger than {most} bytes")
    return text.removeprefix(BOM_UTF8)


def _decompressed(data: bytes, most: int) -> bytes:
    parts, size, at = [], 0, 0
    for _ in range(MOST_MEMBERS):
        unpacking = zlib.decompressobj(_GZIP_WINDOW)
        while not unpacking.eof:
            fed = data[at : at + _FED]
            if not fed:
                raise InvalidInput("truncated: the compressed data ends too early")
            try:
                part = unpacking.decompress(fed, most + 1 - size)
            except zlib.error:
                raise InvalidInput("damaged: it cannot be decompressed with gzip") from None
            parts.append(part)
            size += len(part)
            at += len(fed) - len(unpacking.unused_data)
            if size > most:
                raise TooLarge(f"larger than {most} bytes when decompressed")
        if not data.startswith(_GZIP, at):
            return b"".join(parts)
    raise InvalidInput(f"compressed in more than {MOST_MEMBERS:,} gzip members")


def json_of(text: bytes) -> Any:
    """Returns the JSON value of a text; None for an empty one.

    Raises `NoJson`, and `InvalidInput` if it exceeds a limit.
    """
    try:
        value = decode(text)
    except RecursionError:
        raise too_deep() from None
    except ValueError:
        raise NoJson("not JSON") from None
    for member in _items_of(value):
        for item in _items_of(member):
            if type(item) in (dict, list):
                _check_item(item)
    return value


def _items_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_item(item: Any) -> None:
    level, count = [item], 0
    for _ in range(MAX_DEPTH - 2):
        count += sum(map(len, level))
        if count > MOST_VALUES_OF_ITEM:
            raise InvalidInput(
                "one schema, snapshot or other item has more than"
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
    raise too_deep()


def too_deep() -> InvalidInput:
    """Returns the error for JSON of too many levels."""
    return InvalidInput(f"its JSON has more than {MAX_DEPTH} levels")
