"""Spark SQL over Iceberg's own NessieCatalog, each with its own session in one Java."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from nessie_cli import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


class Server:
    """A `nessie serve`, its store, and a folder for tables."""

    def __init__(self, url: str, store: str, warehouse: Path) -> None:
        self.url = url
        self.store = store
        self.warehouse = warehouse

    def nessie(self, *words: str) -> str:
        """Runs our command over this server, and returns its output."""
        command = [sys.executable, "-m", "nessie_cli", "--store", f"{self.url}/api/v2", *words]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def hash_of(self, reference: str) -> str:
        """Returns the hash of a reference."""
        with connect(self.store) as repository:
            return repository.reference(reference).hash


class Sql:
    """A Spark session whose current catalog `lake` is a NessieCatalog."""

    def __init__(self, spark: SparkSession, server: Server, api: str, **options: str) -> None:
        self.session = spark.newSession()
        catalog = "spark.sql.catalog.lake"
        given = {
            "type": "nessie",
            "uri": f"{server.url}/api/{api}",
            "warehouse": str(server.warehouse),
            # Without it, a session caches tables for half a minute.
            "cache-enabled": "false",
            **{name.replace("__", "."): value for name, value in options.items()},
        }
        self.session.conf.set("spark.sql.shuffle.partitions", "1")
        self.session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        for name, value in given.items():
            self.session.conf.set(f"{catalog}.{name}", value)
        self("USE lake")

    def __call__(self, statement: str) -> Rows:
        """Returns the rows of a query."""
        return [tuple(row) for row in self.session.sql(statement).collect()]

    def refused(self, statement: str) -> tuple[str, str]:
        """Returns the error of a statement: Spark's or Java's class, and its message."""
        try:
            self(statement)
        except PySparkException as refusal:
            return refusal.getCondition() or type(refusal).__name__, str(refusal)
        except Py4JJavaError as refusal:
            return java_error(refusal)
        raise AssertionError(f"nothing was refused: {statement}")

    def table(self, name: str) -> Any:
        """Returns a table as an object of Iceberg's Java library."""
        return self.session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.session._jsparkSession, f"lake.{name}"
        )  # type: ignore[union-attr]


def java_error(error: Py4JJavaError) -> tuple[str, str]:
    """Returns the class of a Java exception without its package, and its first line."""
    java = error.java_exception
    return str(java.getClass().getSimpleName()), str(java.getMessage()).partition("\n")[0]
