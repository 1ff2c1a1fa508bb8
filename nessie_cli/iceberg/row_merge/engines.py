"""Where the rows of a table are merged: in this process, or on an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nessie_cli.iceberg.row_diff.encoding import HASH
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.spool import Spool
from nessie_cli.iceberg.row_merge.data_files import DataFileWriter, Write
from nessie_cli.iceberg.row_merge.parts import PartWork, RowResult
from nessie_cli.iceberg.row_merge.sides import KeyRange, PlacesOfOurs, SideChanges, parts_of

MOST_SELECTED = 4_000_000
"""The most changed keys of theirs that are held in memory, to skip other rows of ours."""


class RowWork(NamedTuple):
    """The rows of a table to be merged.

    `places` returns those of the rows of ours with some keys of theirs. `part` is the work on each
    part.
    """

    ours: SideChanges
    theirs: SideChanges
    places: Callable[[KeyRange], PlacesOfOurs]
    part: PartWork


class RowEngine(ABC):
    """Merges rows. The rows of the result do not depend on the engine."""

    @abstractmethod
    def merge(self, work: RowWork, reader: Reader, write: Write) -> tuple[PlacesOfOurs, RowResult]:
        """Merges the rows of a table, and writes the new ones into data files.

        Raises `InvalidInput` or `StoreUnavailable` for a file that cannot be read or written.
        """


class LocalRows(RowEngine):
    """Merges rows in this process, by temporary files."""

    def merge(self, work: RowWork, reader: Reader, write: Write) -> tuple[PlacesOfOurs, RowResult]:
        """Merges the rows. See `RowEngine.merge`."""
        parts = parts_of([work.ours, work.theirs])
        with Spool(work.ours.schema, parts) as changes:
            changed = _Keys()
            theirs = changed.noting(work.theirs.read(reader))
            changes.fill(chain(work.ours.read(reader), theirs))
            ours = work.places(work.theirs.keys)
            with Spool(ours.schema, parts) as places:
                places.fill(selecting(ours.read(reader), changed.hashes))
                writer, result = DataFileWriter(work.part.form, write), RowResult()
                for part in changes.parts:
                    work.part.merge(list(changes.read(part)), places.read(part), writer, result)
                work.part.close(writer, result)
        return ours, result


class _Keys:
    """The hashes of the keys that theirs changed, as long as they are not too many."""

    def __init__(self) -> None:
        self._hashes: list[pa.Array] | None = []
        self._count = 0

    def noting(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches unchanged, and notes their hashes."""
        for batch in batches:
            self._count += batch.num_rows
            if self._count > MOST_SELECTED:
                self._hashes = None
            elif self._hashes is not None:
                self._hashes.append(batch["hash"])
            yield batch

    @property
    def hashes(self) -> pa.Array | None:
        """The hashes, or None if they are too many."""
        if self._hashes is None:
            return None
        return pa.chunked_array(self._hashes, HASH).combine_chunks()


def selecting(
    batches: Iterable[pa.RecordBatch], hashes: pa.Array | None
) -> Iterator[pa.RecordBatch]:
    """Yields the rows with some hashes, or all if there are too many hashes (None)."""
    if hashes is None:
        yield from batches
        return
    for batch in batches:
        yield batch.filter(pc.is_in(batch["hash"], value_set=hashes))
