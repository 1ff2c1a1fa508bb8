"""The answer with the changed rows of a table: a stream of frames, each of limited size.

A frame has its kind (one byte), the size of its content (four bytes, big-endian) and the content.
The first frame is a summary, and the last one is an end or a fault. So a client notices a stream
that was cut off, and the reason of a failure arrives also after the first rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from nessie_cli.model import ContentKey

LARGEST = 1 << 20
"""The largest content of a frame in bytes."""
HEADER = 5
"""The bytes of a frame before its content."""

SUMMARY, ROWS, WAIT, FAULT, END = b"S", b"R", b"W", b"F", b"E"
"""The kinds of frames.

They are JSON of a `RowSummary`; a part of an Arrow stream; nothing, while the server is still
reading; JSON of an error; JSON of a `RowEnd`. The process that reads rows names the file in `WAIT`.
"""


class RowQuery(Struct, frozen=True, kw_only=True):
    """What a client asks for: the rows of a table that differ between two commits.

    `old_key` is the key before a rename. Without `rows`, only metadata is read.
    """

    before: str
    after: str
    key: ContentKey
    old_key: ContentKey | None = None
    key_columns: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: str | None = None
    limit: int | None = None
    rows: bool = True


class FileCounts(Struct, frozen=True):
    """The number of some data files, with their rows and bytes."""

    files: int
    rows: int
    bytes: int


class RowSummary(Struct, frozen=True, rename="camel"):
    """What differs in a table by its metadata. `schema` are the compared columns, as in Iceberg."""

    schema: dict[str, Any]
    key: list[str]
    added: FileCounts
    removed: FileCounts
    changed: FileCounts
    delete_files: int
    bytes: int


class RowEnd(Struct, frozen=True, rename="camel"):
    """The end of the rows. `ambiguous_keys` are those of several rows, which are not paired."""

    ambiguous_keys: int


class Frame(NamedTuple):
    """A frame of the stream."""

    kind: bytes
    content: bytes

    def encoded(self) -> bytes:
        """Returns the bytes of the frame."""
        return self.kind + len(self.content).to_bytes(4) + self.content


def size_of(header: bytes) -> int:
    """Returns the size of the content of a frame. Raises `ValueError` for an invalid header."""
    size = int.from_bytes(header[1:])
    if len(header) != HEADER or header[:1] not in (SUMMARY, ROWS, WAIT, FAULT, END):
        raise ValueError("not the header of a frame")
    if size > LARGEST:
        raise ValueError(f"a frame of {size} bytes")
    return size


def frames(data: bytes) -> Iterator[Frame]:
    """Yields the frames of a complete answer. Raises `ValueError` if it is cut off or damaged."""
    place, kind = 0, b""
    while place < len(data):
        header = data[place : place + HEADER]
        size, kind = size_of(header), header[:1]
        content = data[place + HEADER : place + HEADER + size]
        if len(content) < size:
            raise ValueError("the last frame is cut off")
        yield Frame(kind, content)
        place += HEADER + size
    if kind not in (FAULT, END):
        raise ValueError("the last frame is missing")
