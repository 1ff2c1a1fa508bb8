"""A check in SQL: a program that runs a query with Spark and fails if it returns rows.

`python -m nessie_cli.runs.spark_check` reads a `SparkCheck` as JSON on stdin, and prints the first
rows or the reason of a failure. Exit codes are those of `nessie_cli.runs.sql_check`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, json

from nessie_cli.runs.sql_check import MOST_ROWS, failed, print_rows

NO_ICEBERG = (
    "Spark has no Iceberg runtime: add `spark.jars.packages"
    " org.apache.iceberg:iceberg-spark-runtime-...` for your version of Spark to"
    " spark-defaults.conf, or put its jar into the folder jars/ of Spark"
)


class SparkCheck(Struct, frozen=True):
    """The settings of the catalog with the earlier state, and the query.

    The environment has those of the catalog that is checked.
    """

    settings: Mapping[str, str]
    query: str


def main() -> int:
    """Runs the query on stdin, and returns the exit code."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return failed("a check with --engine spark needs PySpark: pip install 'nessie-cli[spark]'")
    given = json.decode(sys.stdin.buffer.read(), type=SparkCheck)
    builder = SparkSession.builder.appName("nessie run check")
    try:
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except Exception as error:  # noqa: BLE001 - Spark's errors have no common class
        return failed(f"Spark cannot start: {_first_line(error)}")
    try:
        if not _has_iceberg(spark):
            return failed(NO_ICEBERG)
        for name, value in given.settings.items():
            # Not a setting of the builder: it would be in the command line of Java, with its token.
            spark.conf.set(name, value)
        result = spark.sql(given.query)
        rows = result.take(MOST_ROWS + 1)
    except Exception as error:  # noqa: BLE001 - an error of Spark, of Java or of the query
        return failed(str(error).partition("\nJVM stacktrace")[0].strip())
    finally:
        spark.stop()
    if not rows:
        return 0
    print_rows(result.columns, rows)
    return 1


def _has_iceberg(spark: Any) -> bool:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001
    try:
        loader.loadClass("org.apache.iceberg.spark.SparkCatalog")
    except Exception:  # noqa: BLE001 - what py4j raises for an exception of Java
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


if __name__ == "__main__":
    raise SystemExit(main())
