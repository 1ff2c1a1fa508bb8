"""The data source itself: `spark.read.format("nessie")`, `spark.readStream.format("nessie")`, `frame.write.format("nessie")`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import structs
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from nessie_cli.spark.failures import at
from nessie_cli.spark.options import Asked, asked, submission
from nessie_cli.spark.process import at_driver, opened
from nessie_cli.spark.reader import Reader
from nessie_cli.spark.table import Pinned
from nessie_cli.spark.tables import OPTIONS, TABLES

if TYPE_CHECKING:
    from nessie_cli.spark.streaming import LogStream
    from nessie_cli.spark.writer import CommitWriter

FILTERS = "spark.sql.python.filterPushdown.enabled"
"""The setting of Spark that hands filters to a data source in Python; it is off by default."""


def register(spark: SparkSession) -> None:
    """Make the format `nessie` known to a session, and filters with it. Each session registers for itself.

    Python on the executors needs this package as well, and the extra `spark` of it.
    """
    spark.conf.set(FILTERS, "true")
    with _active(spark):
        spark.dataSource.register(NessieDataSource)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread: Spark 4.1 looks there, whichever one registers, and refuses a name that it finds."""
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
    """A repository as tables. What `ref` and its like name is looked up when the frame is made; every task reads by those hashes."""

    _seen: tuple[Asked, Pinned] | None = None

    @classmethod
    def name(cls) -> str:
        """The word for `format(...)`."""
        return "nessie"

    def schema(self) -> StructType:
        """The columns of the table, with comments. The state that the frame sees is looked up here."""
        asked, _ = self._look()
        return TABLES[asked.table].schema

    def reader(self, schema: StructType) -> Reader:
        """What reads the table."""
        return Reader(*self._look(), schema)

    def streamReader(self, schema: StructType) -> LogStream:  # noqa: N802 - Spark's name
        """What reads the table as a stream."""
        # Spark starts a new Python for each step of each query: it loads what that step needs.
        from nessie_cli.spark.streaming import LogStream

        return LogStream(*self._look(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> CommitWriter:
        """What makes a commit of a frame."""
        from nessie_cli.spark.writer import CommitWriter

        with at("df.write"):
            found = submission(self.options)
        return CommitWriter(
            structs.replace(found, url=at_driver(found.url)), schema, overwrite=overwrite
        )

    def _look(self) -> tuple[Asked, Pinned]:
        """What is asked for and the state that it is asked of: looked up once, by the process that makes the frame."""
        if self._seen is None:
            with at("spark.read"):
                found = asked(self.options, OPTIONS)
            found = structs.replace(found, url=at_driver(found.url))
            with at(found.place), opened(found.url) as repository:
                self._seen = found, TABLES[found.table].pin(repository, found)
        return self._seen
