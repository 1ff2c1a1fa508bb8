"""Deleted rows of data files: position deletes, deletion vectors and equality deletes.

https://iceberg.apache.org/spec/#row-level-deletes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.states import Identity, TableFile
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.row_diff.encoding import hashes
from nessie_cli.iceberg.row_diff.parquet import Reader, opened, readable
from nessie_cli.iceberg.vectors import read_vector

_PATH = NestedField(2147483546, "file_path", StringType())
_POSITION = NestedField(2147483545, "pos", LongType())

Columns = tuple[int, ...]
"""The ids of the columns of an equality delete, ascending."""
EqualityDeletes = Mapping[Columns, set[bytes]]
"""The hashes of deleted values, by their columns."""


class Deletes:
    """Reads delete files, each once. Memory grows with their rows.

    `fields` are the columns of the table by id, those of its older schemas included.
    """

    def __init__(self, reader: Reader, fields: Mapping[int, NestedField]) -> None:
        self._reader = reader
        self._fields = fields
        self._positions: dict[Identity, Mapping[str, BitMap64]] = {}
        self._equality: dict[Identity, set[bytes]] = {}

    def positions(self, deletes: Iterable[TableFile], path: str) -> BitMap64:
        """Returns the positions that position deletes or a vector delete in a data file."""
        deleted = BitMap64()
        for file in deletes:
            if file.identity not in self._positions:
                read = self._vector if file.is_vector else self._position_deletes
                self._positions[file.identity] = read(file)
            deleted |= self._positions[file.identity].get(path, BitMap64())
        return deleted

    def equality(self, deletes: Iterable[TableFile]) -> EqualityDeletes:
        """Returns the values that equality deletes delete."""
        deleted: dict[Columns, set[bytes]] = {}
        for file in deletes:
            if file.identity not in self._equality:
                self._equality[file.identity] = self._equality_deletes(file)
            deleted.setdefault(columns_of(file), set()).update(self._equality[file.identity])
        return deleted

    def fields_of(self, columns: Columns) -> list[NestedField]:
        """Returns the columns of an equality delete."""
        missing = [id_ for id_ in columns if id_ not in self._fields]
        if missing:
            raise InvalidInput(
                f"an equality delete names the column {missing[0]}, which is unknown"
            )
        return [self._fields[id_] for id_ in columns]

    def _position_deletes(self, file: TableFile) -> Mapping[str, BitMap64]:
        positions: dict[str, BitMap64] = {}
        with opened(self._reader, file) as rows, readable(file.path):
            for batch in rows.batches(rows.projection([_PATH, _POSITION])):
                paths, values = batch.rows.columns
                least = pc.min(values).as_py()
                if paths.null_count or values.null_count or (least is not None and least < 0):
                    raise pa.ArrowInvalid("it deletes a row without a path or position")
                for path, position in zip(paths.to_pylist(), values.to_pylist(), strict=True):
                    positions.setdefault(path, BitMap64()).add(position)
        return positions

    def _equality_deletes(self, file: TableFile) -> set[bytes]:
        values: set[bytes] = set()
        if not columns_of(file):
            raise InvalidInput(f"{shown(file.path)} deletes rows by the values of no column")
        with opened(self._reader, file) as rows:
            projection = rows.projection(self.fields_of(columns_of(file)))
            for batch in rows.batches(projection):
                values.update(hashes(batch.rows.columns).to_pylist())
        return values

    def _vector(self, file: TableFile) -> Mapping[str, BitMap64]:
        _, offset, size = file.identity
        with readable(file.path), self._reader.open(file.path) as source:
            source.seek(offset)
            blob = source.read(size)
        return {str(file.referenced): read_vector(blob, file)}


def columns_of(file: TableFile) -> Columns:
    """Returns the ids of the columns of a file of equality deletes."""
    ids: Sequence[int] = file.row.get("equality_ids") or ()
    return tuple(sorted(ids))
