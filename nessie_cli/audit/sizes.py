"""Sizes of tables by the summaries of their snapshots. Reads neither manifests nor data.

https://iceberg.apache.org/spec/#optional-snapshot-summary-fields
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from heapq import nsmallest
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.metadata import oldest_snapshot, parse_document
from nessie_cli.model import ContentKey, IcebergTable

_TOLD = ("total-records", "total-data-files", "total-files-size")


class MeasuredTable(Struct, frozen=True):
    """The size of a table, None for parts that are missing in the summary of its snapshot.

    `oldest_snapshot` is the time of the oldest one in its metadata file. `problem` is the reason
    why that cannot be read, in one line.
    """

    key: ContentKey
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    problem: str | None = None
    oldest_snapshot: datetime | None = None

    @property
    def rank(self) -> tuple[int, int, ContentKey]:
        """Sorts the largest first, unknown sizes last."""
        return -(-1 if self.bytes is None else self.bytes), -(self.rows or 0), self.key


class Sizes(Struct, frozen=True):
    """Sums over all Iceberg tables, and the largest ones. Sums omit `unreadable` tables."""

    tables: int = 0
    unreadable: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    largest: tuple[MeasuredTable, ...] = ()


def size_of_table(key: ContentKey, content: IcebergTable, files: Files) -> MeasuredTable:
    """Returns the size of a table. Cost: one read of its metadata file."""
    try:
        document = parse_document(files.read(content.metadata_location), content.metadata_location)
        rows, data_files, size = _told(document, content.snapshot_id)
        return MeasuredTable(key, rows, data_files, size, oldest_snapshot=oldest_snapshot(document))
    except (InvalidInput, StoreUnavailable) as error:
        return MeasuredTable(key, problem=error.message)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return MeasuredTable(
            key, problem=f"{shown(content.metadata_location)} is not valid Iceberg metadata"
        )


def _told(document: Any, snapshot_id: int) -> tuple[int | None, int | None, int | None]:
    if snapshot_id == NO_SNAPSHOT:
        return 0, 0, 0
    summaries = (
        snapshot.get("summary")
        for snapshot in document.get("snapshots") or ()
        if snapshot.get("snapshot-id") == snapshot_id
    )
    summary = next(summaries, None) or {}
    rows, files, size = (
        None if summary.get(name) is None else int(summary[name]) for name in _TOLD
    )
    return rows, files, size


def sizes(table_sizes: Iterable[MeasuredTable], most: int) -> Sizes:
    """Returns the sums and the largest tables. Memory: about 100 bytes for each table."""
    every = list(table_sizes)
    readable = [size for size in every if size.problem is None]
    rows, files, total = (
        sum(getattr(size, name) or 0 for size in readable) for name in ("rows", "files", "bytes")
    )
    return Sizes(
        len(every),
        len(every) - len(readable),
        rows,
        files,
        total,
        tuple(nsmallest(most, readable, key=lambda size: size.rank)),
    )


def together(parts: Iterable[Sizes], most: int) -> Sizes:
    """Adds up the sums of several parts of a state."""
    every = list(parts)
    number, unreadable, rows, files, total = (
        sum(getattr(part, name) for part in every)
        for name in ("tables", "unreadable", "rows", "files", "bytes")
    )
    largest = nsmallest(
        most, (size for part in every for size in part.largest), key=lambda size: size.rank
    )
    return Sizes(number, unreadable, rows, files, total, tuple(largest))
