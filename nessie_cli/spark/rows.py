"""The table `rows`: the rows of one Iceberg table that differ between two commits.

The driver compares metadata. Each task reads one data file, with the deletes that apply to it. So a
row that was only written to another file is deleted in one part and inserted in another one:
`without_rewritten` removes such pairs, in Spark. Updates are a deleted and an inserted row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from msgspec import structs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives it
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.changes import CHANGE_TYPE, DELETE, INSERT
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.iceberg.row_diff.difference import TableDifference
from nessie_cli.iceberg.row_diff.encoding import hashes
from nessie_cli.iceberg.row_diff.reading import RowReader
from nessie_cli.iceberg.row_diff.scan import FilePair
from nessie_cli.model import Content, ContentKey, IcebergTable
from nessie_cli.repository.base import Repository
from nessie_cli.spark.errors import at
from nessie_cli.spark.options import ReadOptions
from nessie_cli.spark.table import Part, PinnedState
from nessie_cli.workspace.environment import of_s3

HASH = "_row_hash"
"""The column with a hash of the row. Equal rows have equal hashes."""


def without_rewritten(changes: DataFrame) -> DataFrame:
    """Returns the changed rows of the table `rows` without those that were only rewritten.

    Rows are a multiset: a row that is deleted twice and inserted once is deleted once.
    """
    same = Window.partitionBy(HASH)
    of_kind = Window.partitionBy(HASH, CHANGE_TYPE)
    kind = F.col(CHANGE_TYPE)
    net = F.sum(F.when(kind == INSERT, 1).otherwise(-1)).over(same)
    number = F.row_number().over(of_kind.orderBy(F.lit(1)))
    left = F.when(kind == INSERT, net).otherwise(-net)
    numbered = changes.withColumn("_number", number).withColumn("_left", left)
    return numbered.where("_number <= _left").drop("_number", "_left", HASH)


class RowsReader(DataSourceReader):
    """Reads the rows that one of two states has and the other one deletes or lacks, by files."""

    def __init__(self, options: ReadOptions, difference: TableDifference) -> None:
        self._place = options.place
        self._files = difference.files
        self._difference = structs.replace(difference, files=())
        own = pa.schema(RowReader(difference, Files()).schema.field("row").type)
        if reserved := {CHANGE_TYPE, HASH}.intersection(own.names):
            raise InvalidInput(f"the table has a column {min(reserved)}, which is that of a change")
        columns = [pa.field(CHANGE_TYPE, pa.string()), pa.field(HASH, pa.binary()), *own]
        try:
            self.schema: StructType = from_arrow_schema(
                pa.schema(columns), prefer_timestamp_ntz=True
            )
        except PySparkException as error:
            raise InvalidInput(f"Spark has no such type: {error}") from None

    def partitions(self) -> Sequence[InputPartition]:
        """Returns a part for each data file."""
        return [Part(pair) for pair in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one data file."""
        if partition is None:
            return
        pair: FilePair = partition.value
        difference = structs.replace(self._difference, files=[pair])
        schema = to_arrow_schema(self.schema)
        with at(self._place):
            for batch in RowReader(difference, Files(of_s3())):
                kinds = pa.array(
                    [INSERT if sign > 0 else DELETE for sign in batch["sign"].to_pylist()]
                )
                row = batch["row"]
                columns = [kinds, hashes([row]).cast(pa.binary()), *row.flatten()]
                table = pa.Table.from_arrays(columns, names=schema.names)
                yield from table.cast(schema).to_batches()


def rows_reader(repository: Repository, options: ReadOptions, pinned: PinnedState) -> RowsReader:
    """Returns the reader of the rows that differ between the pinned commits."""
    if options.key is None:
        raise InvalidInput("option 'key' is missing", hint="set it to the key of the table")
    key = ContentKey.parse(options.key)
    (head,) = pinned.heads
    states = [
        repository.contents(f"@{hash_}", [key]).get(key) for hash_ in (pinned.since, head.hash)
    ]
    if states == [None, None]:
        raise InvalidInput(f"option 'key': neither revision has a content {key}")
    before, after = (_table(key, content) for content in states)
    return RowsReader(options, changed_rows(before, after, properties=of_s3()).difference)


def _table(key: ContentKey, content: Content | None) -> IcebergTable | None:
    if content is None or isinstance(content, IcebergTable):
        return content
    raise InvalidInput(f"option 'key': {key} is not an Iceberg table")
