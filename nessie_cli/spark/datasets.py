"""The datasets of a garbage collection run as Spark frames, read and written by tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc.datasets import Dataset

_TIMES = "spark.sql.parquet.outputTimestampType"


def read(spark: SparkSession, dataset: Dataset, columns: StructType) -> DataFrame:
    """Returns a dataset of a run. If Spark has written it, its files are one folder deeper."""
    return (
        spark.read.schema(columns)
        .option("recursiveFileLookup", "true")
        .parquet(dataset.folder.as_uri())
    )


def columns_of(*names: str, **others: Any) -> StructType:
    """Returns columns: strings by name alone, others with their type."""
    return StructType(
        [
            *(StructField(name, StringType()) for name in names),
            *(StructField(name, type_) for name, type_ in others.items()),
        ]
    )


@contextmanager
def _with_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def write(frame: DataFrame, rows: int, dataset: Dataset) -> int:
    """Writes a dataset of `rows` rows by tasks.

    Raises `StoreUnavailable` if the driver does not see the files that the tasks have written.
    """
    with dataset.replacing() as folder:
        write_files(frame, rows, folder / "rows")
    return rows


def write_files(frame: DataFrame, rows: int, folder: Path) -> None:
    """Writes `rows` rows into a folder. Raises the errors of `write`."""
    with _with_setting(frame.sparkSession, _TIMES, "TIMESTAMP_MICROS"):
        frame.write.mode("overwrite").parquet(folder.as_uri())
    there = sum(parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))
    if there != rows:
        raise StoreUnavailable(
            f"{folder}: Spark's workers have written {rows} rows, but only {there} are here",
            hint="the driver and all workers must share the folder of runs",
        )
