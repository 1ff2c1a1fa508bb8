"""Reading a table: pieces planned where the driver is, rows read as Arrow batches where the tasks are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput
from nessie_cli.spark.failures import at
from nessie_cli.spark.narrowing import EVERYTHING, narrow
from nessie_cli.spark.options import Asked
from nessie_cli.spark.process import opened, opened_by_worker
from nessie_cli.spark.table import Part, Pinned, Row, Table
from nessie_cli.spark.tables import TABLES

ROWS_PER_BATCH = 2_000


class Batches:
    """Rows of a table as Arrow batches with the columns of a schema: all of the table's, or those that a user has named."""

    def __init__(self, table: Table, schema: StructType) -> None:
        own = {field.name: (place, field) for place, field in enumerate(table.schema.fields)}
        for field in schema.fields:
            if field.name not in own:
                raise InvalidInput(
                    f"column {field.name}: table {table.name} has none; it has {', '.join(own)}"
                )
            wanted, there = (
                field.dataType.simpleString(),
                own[field.name][1].dataType.simpleString(),
            )
            if wanted != there:
                raise InvalidInput(f"column {field.name}: is {there}, not {wanted}")
        self._places = [own[field.name][0] for field in schema.fields]
        self._schema = to_arrow_schema(StructType([own[field.name][1] for field in schema.fields]))

    def of(self, rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        """The batches of some rows; at most `ROWS_PER_BATCH` of them are held at a time."""
        while some := list(islice(rows, ROWS_PER_BATCH)):
            columns = [
                pa.array([row[place] for row in some], field.type)
                for place, field in zip(self._places, self._schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def read_part(
    asked: Asked, pinned: Pinned, schema: StructType, part: InputPartition | None
) -> Iterator[pa.RecordBatch]:
    """The rows of one piece. Runs in a task, on whatever machine; None is a plan without pieces."""
    if part is None:
        return
    assert isinstance(part, Part)
    table = TABLES[asked.table]
    with at(asked.place), opened_by_worker(asked.url, pinned.created) as repository:
        yield from Batches(table, schema).of(table.rows(repository, part.what))


class Reader(DataSourceReader):
    """Reads the state that was pinned when the frame was made."""

    def __init__(self, asked: Asked, pinned: Pinned, schema: StructType) -> None:
        self._asked = asked
        self._pinned = pinned
        self._schema = schema
        self._wanted = EVERYTHING
        with at(asked.place):
            if asked.commits_per_batch is not None:
                raise InvalidInput("option maxCommitsPerBatch: is for streams (spark.readStream)")
            Batches(TABLES[asked.table], schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that the store can be asked for; the others are Spark's."""
        self._wanted, left = narrow(filters, TABLES[self._asked.table].narrowed)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """The pieces, each with the hashes that it reads by."""
        if self._wanted.nothing:
            return []
        with at(self._asked.place), opened(self._asked.url) as repository:
            plan = TABLES[self._asked.table].plan(
                repository, self._asked, self._pinned, self._wanted
            )
        return [Part(piece) for piece in plan]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one piece."""
        return read_part(self._asked, self._pinned, self._schema, partition)
