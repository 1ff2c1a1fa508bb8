"""The rows that only one of two states of a table has, read from the files that differ.

A row that was written to another file is in both states, but is still among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import LongType, NestedField
from pyroaring import BitMap64

from nessie_cli.iceberg.combination.manifests import bound
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.row_diff.deletes import Deletes
from nessie_cli.iceberg.row_diff.difference import TableDifference
from nessie_cli.iceberg.row_diff.encoding import hashes
from nessie_cli.iceberg.row_diff.parquet import Batch, ParquetRows, Reader, opened
from nessie_cli.iceberg.row_diff.scan import FilePair
from nessie_cli.iceberg.row_diff.schemas import (
    Projection,
    arrow_type,
    every_field,
    name_mapping,
    partition_values,
)
from nessie_cli.model.progress import Progress

Check = Callable[[pa.RecordBatch], object]
OLD, NEW = -1, 1
"""The sign of a row of the earlier and of the later state."""
_ROW_ID = NestedField(2147483540, "_row_id", LongType(), required=False)
_PLACE = (("file", pa.int32()), ("position", pa.int64()))
_SPARSE = 0.2
"""Up to this share of a file, columns of equality deletes are read apart from the others."""


class RowReader:
    """Reads the rows that are live in one state only.

    A batch has the sign of its rows, their ids if they pair updated rows, and the rows as structs.
    With `places`, it also has the number of their file in the difference, and their positions.
    `check` is called with each batch, and may raise an error.
    """

    def __init__(
        self,
        difference: TableDifference,
        reader: Reader,
        progress: Progress | None = None,
        check: Check | None = None,
        *,
        places: bool = False,
    ) -> None:
        self._difference = difference
        self._reader = reader
        self._progress = progress
        self._check = check
        documents = (difference.before, difference.after)
        fields = {
            **every_field(document for document in documents if document),
            **{field.field_id: field for field in difference.schema.fields},
        }
        self._deletes = Deletes(reader, fields)
        self._row = arrow_type(difference.schema.as_struct())
        self._places = places
        columns = [("sign", pa.int8()), ("row_id", pa.int64()), ("row", self._row)]
        self.schema = pa.schema([*columns, *(_PLACE if places else ())])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows file by file."""
        done = 0
        for number, pair in enumerate(self._difference.files):
            for batch in self._rows_of(pair, number):
                if self._check is not None:
                    self._check(batch)
                yield batch
            done += pair.file.row["file_size_in_bytes"]
            if self._progress is not None:
                self._progress(done, self._difference.bytes)

    def _rows_of(self, pair: FilePair, number: int) -> Iterator[pa.RecordBatch]:
        path = pair.file.path
        deleted = [self._deletes.positions(side.positions if side else (), path) for side in pair]
        has_equality = any(side and side.equality for side in pair)
        if pair.before and pair.after and not has_equality and deleted[0] == deleted[1]:
            return
        with opened(self._reader, pair.file) as rows:
            if has_equality:
                by_value = self._deleted_by_value(pair, rows)
                deleted = [a | b for a, b in zip(deleted, by_value, strict=True)]
            every = BitMap64(range(rows.starts[-1]))
            old, new = (
                every - positions if side else BitMap64()
                for side, positions in zip(pair, deleted, strict=True)
            )
            signed = [(OLD, pair.before, old - new), (NEW, pair.after, new - old)]
            for batch in self._batches(pair, rows, old ^ new):
                for sign, side, positions in signed:
                    if side is not None:
                        place = (number, positions)
                        yield from self._selected(batch, place, sign, side.first_row_id)

    def _batches(self, pair: FilePair, rows: ParquetRows, positions: BitMap64) -> Iterator[Batch]:
        """Yields the rows of the row groups that contain some positions."""
        fields = list(self._difference.schema.fields)
        if self._difference.next_row_id is not None:
            fields.append(_ROW_ID)
        starts = rows.starts
        groups = [
            number
            for number in range(len(starts) - 1)
            if positions.range_cardinality(starts[number], starts[number + 1])
        ]
        return rows.batches(self._projection(pair, rows, fields), groups)

    def _projection(
        self, pair: FilePair, rows: ParquetRows, fields: Sequence[NestedField]
    ) -> Projection:
        document = self._difference.after if pair.after else self._difference.before
        assert document is not None
        constants = partition_values(document, pair.file)
        return rows.projection(fields, name_mapping(document), constants)

    def _deleted_by_value(self, pair: FilePair, rows: ParquetRows) -> list[BitMap64]:
        """Returns the positions that equality deletes delete in each state."""
        deletes = [self._deletes.equality(side.equality if side else ()) for side in pair]
        ids = sorted({id_ for each in deletes for columns in each for id_ in columns})
        projection = self._projection(pair, rows, self._deletes.fields_of(tuple(ids)))
        if _share_of(ids, pair.file) > _SPARSE:
            rows.copy()
        deleted = [BitMap64() for _ in pair]
        for batch in rows.batches(projection):
            for columns in {columns for each in deletes for columns in each}:
                values = hashes([batch.rows.column(ids.index(id_)) for id_ in columns])
                for position, value in enumerate(values.to_pylist(), batch.start):
                    for each, positions in zip(deletes, deleted, strict=True):
                        if value in each.get(columns, ()):
                            positions.add(position)
        return deleted

    def _selected(
        self, batch: Batch, place: tuple[int, BitMap64], sign: int, first_row_id: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a batch at some positions of the file with a number."""
        number, positions = place
        end = batch.start + batch.rows.num_rows
        selected = pa.array((positions & BitMap64(range(batch.start, end))).to_array(), pa.int64())
        if not len(selected):
            return
        rows = batch.rows
        if len(selected) < rows.num_rows:
            rows = rows.take(pc.subtract(selected, batch.start))
        columns = rows.columns
        row_ids = pa.nulls(rows.num_rows, pa.int64())
        if self._difference.next_row_id is not None:
            row_ids = columns.pop()
            if first_row_id is not None:
                row_ids = pc.coalesce(row_ids, pc.add(selected, first_row_id))
        row = pa.StructArray.from_arrays(columns, fields=list(self._row))
        signs = pa.repeat(pa.scalar(sign, pa.int8()), rows.num_rows)
        arrays = [signs, row_ids, row]
        if self._places:
            arrays += [pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows), selected]
        yield pa.record_batch(arrays, schema=self.schema)


def _share_of(ids: Sequence[int], file: TableFile) -> float:
    """Returns the share of some columns in the bytes of a data file, 1 if it is unknown.

    The footer of the file says it, too, but Arrow ends the process for a footer that is damaged.
    """
    sizes = [bound(file.row.get("column_sizes"), id_) for id_ in ids]
    whole = file.row["file_size_in_bytes"]
    is_known = whole > 0 and all(isinstance(size, int) for size in sizes)
    return sum(sizes) / whole if is_known else 1.0
