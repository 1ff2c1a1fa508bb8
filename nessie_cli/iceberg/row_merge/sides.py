"""The rows that each side of a table changed since the base, with hashes of their keys."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs
from pyiceberg.schema import Schema

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.bounds import value_range
from nessie_cli.iceberg.combination.states import Identity, TableFile
from nessie_cli.iceberg.row_diff.changes import CHANGE_TYPE, INSERT, RowChanges
from nessie_cli.iceberg.row_diff.difference import TableDifference
from nessie_cli.iceberg.row_diff.encoding import HASH, hashes
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.reading import RowReader
from nessie_cli.iceberg.row_diff.scan import FilePair, Read, ScannedFile, differing_files
from nessie_cli.iceberg.row_diff.schemas import arrow_type, selected
from nessie_cli.iceberg.row_merge.decision import Side

ROWS_OF_PART = 200_000
"""The changed rows that are merged at once in memory, as far as `MOST_PARTS` allow."""
MOST_PARTS = 64
_EVERY_ROW_ID = 2**63 - 1


class KeyRange:
    """The smallest and the largest value of each column of a key, over some rows."""

    def __init__(self, schema: Schema, key: Sequence[str]) -> None:
        self._fields = {name: schema.find_field(name) for name in key}
        self._bounds: dict[str, tuple[Any, Any]] = {}
        self._is_empty = True

    def add(self, rows: pa.Array) -> None:
        """Adds the keys of rows. Raises `InvalidInput` for a key that is null."""
        self._is_empty = self._is_empty and not len(rows)
        columns = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
        for name in self._fields:
            column = columns[name]
            if column.null_count:
                raise InvalidInput(
                    f"the rows cannot be merged: the column {name} of the key is null in some rows"
                )
            if isinstance(column, pa.ExtensionArray) or not len(column):
                continue
            if pa.types.is_temporal(column.type):
                column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())  # noqa: PLR2004
            low, high = (end.as_py() for end in pc.min_max(column).values())
            self._extend(name, low, high)

    def include(self, other: KeyRange) -> None:
        """Adds the keys of another range of the same columns."""
        self._is_empty = self._is_empty and other._is_empty
        for name, ends in other._bounds.items():
            self._extend(name, *ends)

    def _extend(self, name: str, low: Any, high: Any) -> None:
        ends = low, high, *self._bounds.get(name, ())
        self._bounds[name] = min(ends), max(ends)

    def may_be_in(self, file: TableFile) -> bool:
        """Returns whether a data file may contain one of the keys, by its bounds."""
        for name, field in self._fields.items():
            of_file = value_range(file, field.field_id, field.field_type)
            of_rows = self._bounds.get(name)
            if of_file is None or of_rows is None:
                continue
            if of_rows[0] > of_file[1] or of_rows[1] < of_file[0]:
                return False
        return not self._is_empty


class SideChanges:
    """The changed rows of a side, as batches with the hash of the key, side, sign and row."""

    def __init__(
        self,
        side: Side,
        states: tuple[Document, Document],
        schema: Schema,
        key: Sequence[str],
        read: Read,
    ) -> None:
        """Takes the states of the base and of the side. Reads manifests only."""
        before, after = states
        files = differing_files(before, after, read)
        # Without a key, the changes are not paired: that comes later, with those of the other side.
        self.difference = TableDifference(before, after, files, schema, (), None, None, None)
        self._side = side
        self._key = key
        row = arrow_type(schema.as_struct())
        self.schema = pa.schema(
            [("hash", HASH), ("side", pa.int8()), ("sign", pa.int8()), ("row", row)]
        )
        self.keys = KeyRange(schema, key)
        """The range of the keys, complete after `read`."""

    def select(self, files: Container[Identity]) -> None:
        """Leaves only these data files. Those that are left out have no row with the same key."""
        pairs = [pair for pair in self.difference.files if pair.file.identity in files]
        self.difference = structs.replace(self.difference, files=pairs)

    def read(self, reader: Reader) -> Iterator[pa.RecordBatch]:
        """Yields the changed rows. Rows that were only written again are left out."""
        row_type = self.schema.field("row").type
        for batch in RowChanges(self.difference, reader):
            rows = pa.StructArray.from_arrays(batch.columns[1:], fields=list(row_type))
            is_new = pc.equal(batch[CHANGE_TYPE], INSERT)
            sign = pc.if_else(is_new, pa.scalar(1, pa.int8()), pa.scalar(-1, pa.int8()))
            yield self.keyed(rows, sign)

    def keyed(self, rows: pa.Array, sign: pa.Array) -> pa.RecordBatch:
        """Returns changed rows as a batch, and adds their keys to the range."""
        self.keys.add(rows)
        side = pa.repeat(pa.scalar(int(self._side), pa.int8()), len(rows))
        return pa.record_batch([key_hashes(rows, self._key), side, sign, rows], schema=self.schema)


class PlacesOfOurs:
    """Where the rows of ours are: batches with the hash of the key, file, position and row id.

    Reads the columns of the key in the data files of ours that may contain some keys: those for
    which `may_contain` is true, by default all, and which have some by their bounds.
    """

    def __init__(
        self,
        ours: Document,
        schema: Schema,
        key: Sequence[str],
        keys: KeyRange,
        read: Read,
        *,
        may_contain: Callable[[TableFile], bool] = lambda _: True,
    ) -> None:
        files = [
            pair
            for pair in differing_files(None, ours, read)
            if keys.may_be_in(pair.file) and may_contain(pair.file)
        ]
        columns = selected(schema, key)
        # The ids of rows are read as well: all are below this one.
        self.difference = TableDifference(None, ours, files, columns, (), _EVERY_ROW_ID, None, None)
        self._key = key
        self.schema = pa.schema(
            [("hash", HASH), ("file", pa.int32()), ("position", pa.int64()), ("row_id", pa.int64())]
        )

    @property
    def files(self) -> list[ScannedFile]:
        """The data files by the numbers in the batches."""
        return [pair.after for pair in self.difference.files if pair.after is not None]

    def read(self, reader: Reader) -> Iterator[pa.RecordBatch]:
        """Yields the places of all live rows in the files."""
        for batch in RowReader(self.difference, reader, places=True):
            arrays = [key_hashes(batch["row"], self._key)]
            arrays += [batch[name] for name in ("file", "position", "row_id")]
            yield pa.record_batch(arrays, schema=self.schema)


T = TypeVar("T", SideChanges, PlacesOfOurs)


def of_files(rows: T, files: Sequence[FilePair]) -> T:
    """Returns changes or places in other files, for a process of its own: `keys` are shared."""
    selection = copy(rows)
    selection.difference = structs.replace(rows.difference, files=files)
    return selection


def key_hashes(rows: pa.Array, key: Sequence[str]) -> pa.Array:
    """Returns the hash of the key of each row."""
    columns = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
    return hashes([columns[name] for name in key])


def parts_of(sides: Sequence[SideChanges]) -> int:
    """Returns in how many parts the changes are divided: a power of two."""
    rows = sum(pair.file.records for side in sides for pair in side.difference.files)
    return min(1 << (rows // ROWS_OF_PART).bit_length(), MOST_PARTS)
