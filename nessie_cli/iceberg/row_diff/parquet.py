"""Data files and delete files: their rows in batches of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.types import NestedField

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.files import NoAnswer, first_line, is_no_answer
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.row_diff.schemas import Projection

SMALL = 2**20
"""Up to this number of bytes, a file is read by one request."""
_MOST_ROWS = 2**33
"""The most rows of a file. A set of their positions takes memory, also if there are no rows."""
_BATCH_ROWS = 2**15
_BATCH_BYTES = 8 * 2**20
_MOST_NAME = 20
"""The most characters of a format in a message."""


class Reader(Protocol):
    """Reads files by their locations: `nessie_cli.iceberg.files.Files`."""

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a small file."""

    def open(self, uri: str) -> Any:
        """Opens a file for random access."""


class Batch(NamedTuple):
    """Some rows of a file, from the position of the first one in the file."""

    start: int
    rows: pa.RecordBatch


class ParquetRows:
    """The rows of a Parquet file. To be used inside `opened`."""

    def __init__(self, source: Any, location: str) -> None:
        self._source = source
        self._location = location
        self._file = parquet.ParquetFile(source)
        self._copies = ExitStack()
        counts = [group.num_rows for group in self._groups()]
        self.starts = list(accumulate(counts, initial=0))
        """The position of the first row of each row group, and the number of rows."""
        if min(counts, default=0) < 0 or self.starts[-1] > _MOST_ROWS:
            raise pa.ArrowInvalid(f"its footer says that it has {self.starts[-1]:,} rows")

    def _groups(self) -> list[Any]:
        return list(map(self._file.metadata.row_group, range(self._file.num_row_groups)))

    def projection(
        self,
        fields: Sequence[NestedField],
        names: Sequence[Document] = (),
        constants: Mapping[int, Any] | None = None,
    ) -> Projection:
        """Returns the conversion of the file's columns to some fields.

        `names` is a name mapping, and `constants` the values of missing columns by field id.
        """
        return Projection(fields, self._file.schema_arrow, names, constants or {})

    def copy(self) -> None:
        """Copies the file to the local disk, for columns that are read twice."""
        with readable(self._location):
            if not isinstance(self._source, pa.BufferReader):
                copy = self._copies.enter_context(TemporaryFile())  # noqa: SIM115
                self._source.seek(0)
                copyfileobj(self._source, copy)
                self._file = parquet.ParquetFile(copy)

    def close(self) -> None:
        """Removes the copy."""
        self._copies.close()

    def batches(
        self, projection: Projection, groups: Sequence[int] | None = None
    ) -> Iterator[Batch]:
        """Yields the rows of some row groups (default: all)."""
        # A file without any of the columns still has its number of rows.
        columns = projection.columns or self._file.schema_arrow.names[:1]
        described = self._groups()
        for group in range(len(described)) if groups is None else groups:
            position = self.starts[group]
            count = described[group].num_rows
            width = max(described[group].total_byte_size, 0) // max(count, 1) + 1
            rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // width))
            with readable(self._location):
                for batch in self._file.iter_batches(rows, row_groups=[group], columns=columns):
                    yield Batch(position, projection.apply(batch))
                    position += batch.num_rows
                read = position - self.starts[group]
                if read != count:
                    raise pa.ArrowInvalid(f"its row group {group} has {read:,} of {count:,} rows")


@contextmanager
def opened(reader: Reader, file: TableFile) -> Iterator[ParquetRows]:
    """Opens a Parquet file. Raises `InvalidInput` for other formats and damaged files."""
    format_ = str(file.row["file_format"]).upper()
    if format_ != "PARQUET":
        name = shown(format_[:_MOST_NAME])
        raise InvalidInput(f"{shown(file.path)} is of the format {name}, which is not supported")
    with reader.open(file.path) as source:
        with readable(file.path):
            is_small = file.row["file_size_in_bytes"] <= SMALL
            rows = ParquetRows(pa.BufferReader(source.read()) if is_small else source, file.path)
        try:
            yield rows
        finally:
            rows.close()


@contextmanager
def readable(location: str) -> Iterator[None]:
    """Raises `InvalidInput` for a damaged file, and `NoAnswer` if it cannot be read now."""
    try:
        yield
    except MemoryError:
        # It is an error of Arrow, too, but the file may be valid.
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = NoAnswer if is_no_answer(error) else InvalidInput
        raise kind(f"{shown(location)} cannot be read: {first_line(error)}") from None
