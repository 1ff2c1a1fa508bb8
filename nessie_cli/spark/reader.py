"""Reads a table: the driver plans parts, tasks read their rows as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput
from nessie_cli.model.batches import batched
from nessie_cli.spark.errors import at
from nessie_cli.spark.options import ReadOptions
from nessie_cli.spark.process import opened, opened_by_worker
from nessie_cli.spark.pushdown import EVERYTHING, push_down
from nessie_cli.spark.table import Part, PinnedState, Row, SourceTable
from nessie_cli.spark.tables import TABLES

ROWS_PER_BATCH = 2_000


class ArrowBatches:
    """Converts rows of a table to Arrow batches with the columns of a schema."""

    def __init__(self, table: SourceTable, schema: StructType) -> None:
        own = {field.name: (place, field) for place, field in enumerate(table.schema.fields)}
        for field in schema.fields:
            if field.name not in own:
                raise InvalidInput(
                    f"column {field.name}: table {table.name} has no such column",
                    hint=f"it has {', '.join(own)}",
                )
            requested, actual = (
                field.dataType.simpleString(),
                own[field.name][1].dataType.simpleString(),
            )
            if requested != actual:
                raise InvalidInput(f"column {field.name} is {actual}, not {requested}")
        self._places = [own[field.name][0] for field in schema.fields]
        self._schema = to_arrow_schema(StructType([own[field.name][1] for field in schema.fields]))

    def of(self, rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        """Yields batches of at most `ROWS_PER_BATCH` rows."""
        for batch in batched(rows, ROWS_PER_BATCH):
            columns = [
                pa.array([row[place] for row in batch], field.type)
                for place, field in zip(self._places, self._schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def read_part(
    options: ReadOptions, pinned: PinnedState, schema: StructType, part: InputPartition | None
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of one part, in a task. None is an empty plan."""
    if part is None:
        return
    assert isinstance(part, Part)
    table = TABLES[options.table]
    with at(options.place), opened_by_worker(options.url, pinned.created) as repository:
        yield from ArrowBatches(table, schema).of(table.rows(repository, part.value))


class Reader(DataSourceReader):
    """Reads the state that was pinned when the frame was created."""

    def __init__(self, options: ReadOptions, pinned: PinnedState, schema: StructType) -> None:
        self._options = options
        self._pinned = pinned
        self._schema = schema
        self._filters = EVERYTHING
        with at(options.place):
            if options.commits_per_batch is not None:
                raise InvalidInput("option maxCommitsPerBatch is for streams (spark.readStream)")
            ArrowBatches(TABLES[options.table], schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes the filters that can be pushed down. Returns the others."""
        self._filters, left = push_down(filters, TABLES[self._options.table].pushed)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the parts, each with its hashes."""
        if self._filters.nothing:
            return []
        with at(self._options.place), opened(self._options.url) as repository:
            plan = TABLES[self._options.table].plan(
                repository, self._options, self._pinned, self._filters
            )
        return [Part(part) for part in plan]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one part."""
        return read_part(self._options, self._pinned, self._schema, partition)
