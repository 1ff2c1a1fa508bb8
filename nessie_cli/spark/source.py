"""The data source `nessie` of `spark.read`, `spark.readStream` and `frame.write`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import structs
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from nessie_cli.spark.errors import at
from nessie_cli.spark.keys import pin_two
from nessie_cli.spark.options import ReadOptions, read_options, write_options
from nessie_cli.spark.process import at_driver, opened
from nessie_cli.spark.reader import Reader
from nessie_cli.spark.table import PinnedState
from nessie_cli.spark.tables import OPTIONS, ROWS, TABLES

if TYPE_CHECKING:
    from nessie_cli.spark.rows import RowsReader
    from nessie_cli.spark.streaming import LogStream
    from nessie_cli.spark.writer import CommitWriter

FILTERS = "spark.sql.python.filterPushdown.enabled"
"""The setting of Spark for filter push-down to Python data sources. It is off by default."""


def register(spark: SparkSession) -> None:
    """Registers the format `nessie` in a session and enables the push-down of filters.

    Call it once for each session. Python on the executors needs nessie-cli with its extra `spark`.
    """
    spark.conf.set(FILTERS, "true")
    with _active(spark):
        spark.dataSource.register(NessieDataSource)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one of this thread.

    Spark 4.1 checks names in the active session, not in the one that registers, and refuses a name
    that exists.
    """
    jvm, session = spark._jvm, spark._jsparkSession  # noqa: SLF001 - nothing public does it without starting a job
    if jvm is None:
        yield
        return
    before = jvm.SparkSession.getActiveSession()
    jvm.SparkSession.setActiveSession(session)
    try:
        yield
    finally:
        if before.isDefined():
            jvm.SparkSession.setActiveSession(before.get())


class NessieDataSource(DataSource):
    """A repository as tables. References are resolved when a frame is created."""

    _seen: tuple[ReadOptions, PinnedState] | None = None
    _rows_seen: RowsReader | None = None

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "nessie"

    def schema(self) -> StructType:
        """Returns the columns of the table. Resolves the references of the frame."""
        options, _ = self._look()
        if options.table == ROWS:
            return self._rows().schema
        return TABLES[options.table].schema

    def reader(self, schema: StructType) -> Reader | RowsReader:
        """Returns the reader of the table."""
        if self._look()[0].table == ROWS:
            return self._rows()
        return Reader(*self._look(), schema)

    def streamReader(self, schema: StructType) -> LogStream:  # noqa: N802 - Spark's name
        """Returns the reader of the table as a stream."""
        # Spark starts a Python process for each step of each query, so each step imports little.
        from nessie_cli.spark.streaming import LogStream

        return LogStream(*self._look(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> CommitWriter:
        """Returns the writer that commits a frame."""
        from nessie_cli.spark.writer import CommitWriter

        with at("df.write"):
            options = write_options(self.options)
        return CommitWriter(
            structs.replace(options, url=at_driver(options.url)), schema, overwrite=overwrite
        )

    def _rows(self) -> RowsReader:
        """Returns the reader of changed rows, which depends on the columns of their table."""
        from nessie_cli.spark.rows import rows_reader

        options, pinned = self._look()
        if self._rows_seen is None:
            with at(options.place), opened(options.url) as repository:
                self._rows_seen = rows_reader(repository, options, pinned)
        return self._rows_seen

    def _look(self) -> tuple[ReadOptions, PinnedState]:
        """Returns the options and the pinned state, resolved once for the frame."""
        if self._seen is None:
            with at("spark.read"):
                options = read_options(self.options, OPTIONS)
            options = structs.replace(options, url=at_driver(options.url))
            with at(options.place), opened(options.url) as repository:
                pin = pin_two if options.table == ROWS else TABLES[options.table].pin
                self._seen = options, pin(repository, options)
        return self._seen
