"""Spark SQL over Iceberg's NessieCatalog or RESTCatalog, each with a session of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.engines.served import WAREHOUSE, Served
from tests.spark.sessions import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


class Sql:
    """A Spark session whose current catalog `lake` is on a reference of a server.

    `api` is the version of Nessie's API that Iceberg's NessieCatalog speaks, or "rest".
    """

    def __init__(
        self, spark: SparkSession, server: Served, api: str, ref: str = "main", **options: str
    ) -> None:
        self.session = spark.newSession()
        catalog = "spark.sql.catalog.lake"
        given = {
            **(_rest(server, ref) if api == "rest" else _nessie(server, api, ref)),
            # Without it, a session sees for half a minute what it has seen before.
            "cache-enabled": "false",
            **{name.replace("__", "."): value for name, value in options.items()},
        }
        self.settings = {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            **{f"{catalog}.{name}": value for name, value in given.items()},
        }
        for name, value in {**SMALL_TABLES, **self.settings}.items():
            self.session.conf.set(name, value)
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


def _nessie(server: Served, api: str, ref: str) -> dict[str, str]:
    return {
        "type": "nessie",
        "uri": f"{server.url}/api/{api}",
        "warehouse": str(server.warehouse),
        "ref": ref,
    }


def _rest(server: Served, ref: str) -> dict[str, str]:
    return {"type": "rest", "uri": server.rest(ref), "warehouse": WAREHOUSE}


def java_error(error: Py4JJavaError) -> tuple[str, str]:
    """Returns the class of a Java exception without its package, and its first line."""
    java = error.java_exception
    return str(java.getClass().getSimpleName()), str(java.getMessage()).partition("\n")[0]
