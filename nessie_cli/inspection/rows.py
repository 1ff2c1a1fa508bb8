"""The rows that differ in the changed tables of two states of a catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import Document, in_state
from nessie_cli.iceberg.row_diff.changes import AFTER, BEFORE, CHANGE_TYPE, INSERT, RowChanges
from nessie_cli.iceberg.row_diff.difference import DifferenceSummary, Selection, compare_tables
from nessie_cli.iceberg.row_diff.values import json_values
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.inspection.metadata import Read, metadata_reader
from nessie_cli.model import Content, IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa

    from nessie_cli.model.progress import Progress

UPDATE = "UPDATE"


class Changes(Protocol):
    """Changed rows as batches, such as `RowChanges`."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""

    @property
    def ambiguous_keys(self) -> int:
        """The keys whose rows are not paired, because several rows have them."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches, once."""


class ChangedTable(NamedTuple):
    """A table whose content differs, and what differs by its metadata. `open` reads the rows."""

    change: ContentChange
    summary: DifferenceSummary
    open: Callable[[Progress], Changes]

    @property
    def columns(self) -> list[str]:
        """The names of the compared columns."""
        return [field.name for field in self.summary.schema.fields]


Comparison = Callable[[ContentChange], ChangedTable]
"""A function that compares the states of a table by their metadata."""


class ChangedRow(NamedTuple):
    """A row that was inserted (`INSERT`), deleted (`DELETE`) or updated (`UPDATE`).

    Values are JSON, in the order of the compared columns; a state is None if it lacks the row.
    """

    kind: str
    before: Sequence[Any] | None
    after: Sequence[Any] | None


def comparison_of_tables(
    files: Files, selection: Selection, work: AbstractContextManager[Progress]
) -> Comparison:
    """Returns a function that compares the states of an Iceberg table by their metadata.

    It raises `InvalidInput` for a table that cannot be compared, and the errors of `Files`. `work`
    is entered for each table.
    """
    read = metadata_reader(files)

    def compared(change: ContentChange) -> ChangedTable:
        with work:
            try:
                states = (change.before, change.after)
                before, after = (_document(content, read) for content in states)
                difference = compare_tables(before, after, files.read, selection)
            except InvalidInput as error:
                raise type(error)(f"{change.keys}: {error.message}") from None
        return ChangedTable(
            change,
            difference.summary,
            lambda progress: RowChanges(difference, files, progress),
        )

    return compared


def tables_among(changes: Iterable[ContentChange]) -> Iterator[ContentChange]:
    """Yields the changes of which a state is an Iceberg table."""
    for change in changes:
        if any(isinstance(content, IcebergTable) for content in (change.before, change.after)):
            yield change


def _document(content: Content | None, read: Read) -> dict[str, Any] | None:
    if not isinstance(content, IcebergTable):
        return None
    document: Document = in_state(read(content.metadata_location), content)
    return dict(document)


def changed_rows(changes: Changes, work: AbstractContextManager[object]) -> Iterator[ChangedRow]:
    """Yields the changes. `work` is entered while files are read."""
    batches = iter(changes)
    while True:
        with work:
            batch = next(batches, None)
        if batch is None:
            return
        kinds = batch[CHANGE_TYPE].to_pylist()
        rows = list(zip(*map(json_values, batch.columns[1:]), strict=True))
        for number, kind in enumerate(kinds):
            if kind == BEFORE:
                yield ChangedRow(UPDATE, rows[number], rows[number + 1])
            elif kind != AFTER:
                is_new = kind == INSERT
                yield ChangedRow(
                    kind, None if is_new else rows[number], rows[number] if is_new else None
                )


def write_parquet(changes: Changes, path: Path) -> Counter[str]:
    """Writes changes to a Parquet file, and returns their number by kind."""
    import pyarrow as pa
    from pyarrow import parquet

    counts: Counter[str] = Counter()
    with parquet.ParquetWriter(path, changes.schema) as writer:
        for batch in changes:
            writer.write_table(pa.Table.from_batches([batch]))
            counts.update(batch[CHANGE_TYPE].to_pylist())
    updates = counts.pop(BEFORE, 0)
    del counts[AFTER]
    return counts + Counter({UPDATE: updates})


def write_no_rows(path: Path) -> None:
    """Writes a Parquet file without rows, for tables that do not differ."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([pa.field(CHANGE_TYPE, pa.string())])
    parquet.write_table(schema.empty_table(), path)
