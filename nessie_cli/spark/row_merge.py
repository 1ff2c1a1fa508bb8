"""Merges the rows of a table with Spark. The result is that of one process.

Tasks read one data file each. Rows that were only written again have equal hashes, so they meet in
one partition, and cancel out. The other ones are divided by the hashes of their keys, together with
the places of the rows of ours. A task merges each part, and writes its new rows. The driver reads
manifests, and writes deletes and metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.sql import SparkSession

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.changes import not_cancelled, with_hashes
from nessie_cli.iceberg.row_diff.encoding import HASH
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.reading import RowReader
from nessie_cli.iceberg.row_diff.scan import FilePair
from nessie_cli.iceberg.row_diff.spool import BYTES_DIVIDED, divided, larger
from nessie_cli.iceberg.row_merge.data_files import DataFileWriter, Write
from nessie_cli.iceberg.row_merge.decision import Decisions, Side
from nessie_cli.iceberg.row_merge.engines import (
    MOST_SELECTED,
    LocalRows,
    RowEngine,
    RowWork,
    selecting,
)
from nessie_cli.iceberg.row_merge.parts import PartWork, RowResult
from nessie_cli.iceberg.row_merge.sides import (
    ROWS_OF_PART,
    KeyRange,
    PlacesOfOurs,
    SideChanges,
    of_files,
)

LEAST = 64 * 2**20
"""The least bytes of data files for Spark: its start takes longer than reading them here."""
_MOST_PARTS = 4096
_BYTES_OF_CHUNK = 16 * 2**10
"""The usual size of a chunk. Its head takes some hundred bytes for each column."""


class _Chunk(NamedTuple):
    """Some rows of a part, as a record batch of Arrow without its schema."""

    part: int
    is_change: bool
    data: bytes


class _Changes(NamedTuple):
    """The changed rows of a side in one partition, and the range of their keys.

    `hashes` are those of the keys of theirs, or None if there are too many in all partitions.
    """

    side: Side
    records: int
    keys: KeyRange
    hashes: pa.Array | None
    data: bytes


class _Merged(NamedTuple):
    """The result of a part, and the decisions that were about its conflicts."""

    result: RowResult
    used: set[tuple[str, str | None]]


class SparkRows(RowEngine):
    """Merges rows on Spark's executors, and few rows here.

    `session` is called if there are enough rows. `files` are sent with the tasks, without
    connections: the executors need access to the files. The locations of new data files are added
    to `written`, also if the merge is refused.
    """

    def __init__(
        self, files: Files, session: Callable[[], SparkSession], written: list[str]
    ) -> None:
        self._files = files
        self._new_session = session
        self._written = written

    def merge(self, work: RowWork, reader: Reader, write: Write) -> tuple[PlacesOfOurs, RowResult]:
        """Merges the rows. See `RowEngine.merge`."""
        if work.ours.difference.bytes + work.theirs.difference.bytes < LEAST:
            return LocalRows().merge(work, reader, write)
        context = self._new_session().sparkContext
        changes = self._changes(context, [work.ours, work.theirs]).persist(StorageLevel.DISK_ONLY)
        try:
            summaries: list[_Changes] = _values(_mapped(changes, _without_rows).collect())
            hashes = _hashes_of_theirs(summaries)
            for each in summaries:
                if each.side is Side.THEIRS:
                    work.theirs.keys.include(each.keys)
            ours = work.places(work.theirs.keys)
            rows = sum(each.records for each in summaries)
            if hashes is None:
                rows += _records(ours.difference.files)
            parts = _parts_of(rows)
            chunks = _mapped(changes, partial(_chunks, work.ours.schema, parts)).union(
                _mapped(
                    _each(context, list(enumerate(ours.difference.files))),
                    partial(_read_places, of_files(ours, ()), self._files, hashes, parts),
                )
            )
            merging = partial(_merge, work.part, self._files, work.ours.schema, ours.schema)
            merged = _mapped(_by_part(chunks, parts), merging).collect()
            return ours, self._added(merged, work.part.decisions)
        finally:
            changes.unpersist()

    def _changes(self, context: SparkContext, sides: Sequence[SideChanges]) -> RDD[Any]:
        """Returns the changed rows of both sides. Each partition has rows of one side."""
        files = [
            (Side(number), pair)
            for number, side in enumerate(sides)
            for pair in side.difference.files
        ]
        parts = _parts_of(max(_records(side.difference.files) for side in sides))
        bare = [of_files(side, ()) for side in sides]
        reading = partial(_read_changes, bare, self._files, parts)
        rows = _by_part(_mapped(_each(context, files), reading), len(sides) * parts)
        return _mapped(rows, partial(_cancel, bare, parts))

    def _added(self, merged: Sequence[Any], decisions: Decisions) -> RowResult:
        """Returns the result of all parts."""
        result = RowResult()
        for each in merged:
            if isinstance(each, _Merged):
                self._written += [file.path for file in each.result.files]
                result.add(each.result)
                decisions.used |= each.used
        _values(merged)
        return result


# -- RDDs -----------------------------------------------------------------------------------------


def _each(context: SparkContext, jobs: Sequence[Any]) -> RDD[Any]:
    """Returns a partition for each job."""
    return context.parallelize(jobs, max(1, len(jobs)))


def _mapped(values: RDD[Any], work: Callable[[Iterable[Any]], Iterable[Any]]) -> RDD[Any]:
    """Performs work on each partition.

    An error of ours is a value of the result: so it is not repeated, and the driver knows its
    class.
    """

    def task(partition: Iterable[Any]) -> Iterator[Any]:
        try:
            yield from work(_checked(partition))
        except NessieError as error:
            yield error

    return values.mapPartitions(task)


def _by_part(chunks: RDD[Any], parts: int) -> RDD[Any]:
    """Returns a partition for each part."""
    return chunks.keyBy(_part_of).partitionBy(parts, int).values()


def _part_of(chunk: _Chunk | NessieError) -> int:
    return chunk.part if isinstance(chunk, _Chunk) else 0


def _checked(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, NessieError):
            raise value
        yield value


def _values(values: Iterable[Any]) -> list[Any]:
    """Returns collected values. Raises an error among them."""
    return list(_checked(values))


# -- tasks ----------------------------------------------------------------------------------------


def _read_changes(
    sides: Sequence[SideChanges],
    files: Files,
    parts: int,
    jobs: Iterable[tuple[Side, FilePair]],
) -> Iterator[_Chunk]:
    """Yields the rows of data files that one state has, divided by the hashes of the rows."""
    for side, pair in jobs:
        rows = RowReader(of_files(sides[side], [pair]).difference, files)
        for part, data in _divided(map(with_hashes, rows), parts):
            yield _Chunk(side * parts + part, is_change=True, data=data)


def _cancel(
    sides: Sequence[SideChanges], parts: int, chunks: Iterable[_Chunk]
) -> Iterator[_Changes]:
    """Yields the changed rows in a partition, without those that were only written again."""
    whole = list(chunks)
    if not whole:
        return
    number = Side(whole[0].part // parts)
    side = sides[number]
    schema = pa.schema([("hash", HASH), *RowReader(side.difference, Files()).schema])

    def read(columns: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        for chunk in whole:
            batch = _batch(chunk, schema)
            yield batch if columns is None else batch.select(columns)

    batches = [side.keyed(batch["row"], batch["sign"]) for batch in not_cancelled(read)]
    if batches:
        rows = pa.concat_batches(batches)
        # Hashes are distributed evenly: the other partitions have about as many.
        is_few = number is Side.THEIRS and rows.num_rows * parts <= MOST_SELECTED
        hashes = rows["hash"] if is_few else None
        yield _Changes(number, rows.num_rows, side.keys, hashes, _bytes(rows))


def _without_rows(changes: Iterable[_Changes]) -> Iterator[_Changes]:
    for each in changes:
        yield each._replace(data=b"")


def _chunks(schema: pa.Schema, parts: int, changes: Iterable[_Changes]) -> Iterator[_Chunk]:
    """Yields changed rows divided by the hashes of their keys."""
    for each in changes:
        for part, data in _divided([_batch(each, schema)], parts):
            yield _Chunk(part, is_change=True, data=data)


def _read_places(
    ours: PlacesOfOurs,
    files: Files,
    hashes: pa.Array | None,
    parts: int,
    jobs: Iterable[tuple[int, FilePair]],
) -> Iterator[_Chunk]:
    """Yields the places of the rows with some keys in numbered data files of ours."""
    for number, pair in jobs:
        batches = selecting(of_files(ours, [pair]).read(files), hashes)
        for part, data in _divided((_numbered(batch, number) for batch in batches), parts):
            yield _Chunk(part, is_change=False, data=data)


def _numbered(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """Returns places with the number of their file."""
    return batch.set_column(1, "file", pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows))


def _merge(
    work: PartWork,
    files: Files,
    changes_schema: pa.Schema,
    places_schema: pa.Schema,
    chunks: Iterable[_Chunk],
) -> Iterator[_Merged]:
    """Merges a part, and writes its new rows."""
    changes: list[pa.RecordBatch] = []
    places: list[pa.RecordBatch] = []
    for chunk in chunks:
        if chunk.is_change:
            changes.append(_batch(chunk, changes_schema))
        else:
            places.append(_batch(chunk, places_schema))
    result = RowResult()
    with _writing(files) as write:
        writer = DataFileWriter(work.form, write)
        work.merge(changes, places, writer, result)
        work.close(writer, result)
    yield _Merged(result, work.decisions.used)


@contextmanager
def _writing(files: Files) -> Iterator[Write]:
    """Yields a function that writes a file. Removes the files if the task fails."""
    written: list[str] = []

    def write(location: str, data: bytes) -> None:
        written.append(location)
        files.write(location, data)

    try:
        yield write
    except BaseException:
        for location in written:
            # A file that stays does no harm: garbage collection removes it.
            with suppress(NessieError, OSError):
                files.remove(location)
        raise


# -- rows as bytes --------------------------------------------------------------------------------


def _divided(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[tuple[int, bytes]]:
    """Yields the rows of each part."""
    for batch in larger(batches, max(BYTES_DIVIDED, parts * _BYTES_OF_CHUNK)):
        for part, rows in divided(batch, parts):
            yield part, _bytes(rows)


def _bytes(rows: pa.RecordBatch) -> bytes:
    data: bytes = rows.serialize().to_pybytes()
    return data


def _batch(rows: _Chunk | _Changes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(rows.data, schema)


def _hashes_of_theirs(changes: Iterable[_Changes]) -> pa.Array | None:
    """Returns the hashes of the keys that theirs changed, or None if there are too many."""
    hashes = [each.hashes for each in changes if each.side is Side.THEIRS]
    if any(each is None for each in hashes):
        return None
    return pa.chunked_array(hashes, HASH).combine_chunks()


def _records(files: Iterable[FilePair]) -> int:
    return sum(pair.file.records for pair in files)


def _parts_of(rows: int) -> int:
    """Returns in how many parts rows are divided: a power of two."""
    return min(1 << (rows // ROWS_OF_PART).bit_length(), _MOST_PARTS)
