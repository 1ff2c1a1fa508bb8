"""Changes with the comparison of their Iceberg metadata files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.iceberg.comparison import DataChange, compare
from nessie_cli.iceberg.metadata import Document, parse_document
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.model import IcebergTable

if TYPE_CHECKING:
    from nessie_cli.iceberg.files import Files
    from nessie_cli.model.progress import Progress

FEW = 10_000
"""Up to this number of changes are counted before the first file is read, to show a total."""
CACHED = 2
"""The number of cached metadata files. A log uses the state of a table twice."""

Read = Callable[[str], Document]
"""A function that reads a metadata file."""


def with_metadata(
    changes: Iterable[ContentChange], read: Read, work: AbstractContextManager[Progress]
) -> Iterator[ContentChange]:
    """Yields each change with the comparison of its metadata files, while they are read.

    A file that cannot be read is reported as a problem of its change; the others are still read.
    `work` is entered for each change, and gets the progress.
    """
    rest = iter(changes)
    first = list(islice(rest, FEW))
    total = len(first) if len(first) < FEW else None
    for number, change in enumerate(chain(first, rest)):
        with work as progress:
            progress(number, total)
            compared = change._replace(metadata=compare(change.before, change.after, read))
        yield compared


def metadata_reader(files: Files) -> Read:
    """Returns a cached reader of metadata files."""

    @lru_cache(CACHED)
    def read(location: str) -> Document:
        return parse_document(files.read(location), location)

    return read


class DataTotals(NamedTuple):
    """How much data some changes add and remove, by the snapshots in metadata files.

    `tables` are those with numbers, and `unread` the other ones.
    """

    tables: int = 0
    unread: int = 0
    data: DataChange = DataChange()


def data_totals(changes: Iterable[ContentChange]) -> DataTotals:
    """Returns the totals of the Iceberg tables among changes with metadata."""
    counted: list[DataChange] = []
    unread = 0
    for change in changes:
        if not any(isinstance(side, IcebergTable) for side in (change.before, change.after)):
            continue
        if change.metadata is None or change.metadata.data is None:
            unread += 1
        else:
            counted.append(change.metadata.data)
    total = DataChange(
        sum(each.rows_added for each in counted),
        sum(each.rows_removed for each in counted),
        sum(each.files_added for each in counted),
        sum(each.files_removed for each in counted),
    )
    return DataTotals(len(counted), unread, total)
