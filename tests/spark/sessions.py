"""A real Spark session for all tests of a process. It listens on loopback only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options for a Java that runs some minutes, too short for the optimizing compiler.

It does not verify the bytecode of Spark's many classes, which took a tenth of its time, nor collect
garbage each time that it has loaded some more of them.
"""
SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Queries leave little behind: a larger part of the memory for new objects saves collections.
    "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -Xmn400m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # The plan of each query is kept as a text, although no interface shows it.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "10",
}
SMALL_TABLES: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a session that reads Iceberg tables of some rows.

Spark would compile code for each query, which takes longer than the query. These tests are about
catalogs and files, and users see neither plans nor code there. Tests of our data source keep
Spark's defaults, because it is a part of the plans of users.
"""


@contextmanager
def environment(folder: Path, **more: str) -> Iterator[None]:
    """Returns the environment of Spark's Java."""
    before = dict(os.environ)
    home = java_home()
    assert home is not None, "Spark needs a Java of version 17 or 21"
    os.environ.update(
        {
            "JAVA_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
        }
    )
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def session(folder: Path, master: str = "local[2]", **settings: str) -> Iterator[SparkSession]:
    """Yields a session and stops it with its Java. `__` stands for a dot in settings."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("tests")
    given = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **given,
    }.items():
        builder = builder.config(name, value)
    with environment(folder):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        process = gateway.proc
        process.stdin.close()
        process.wait(120)
        SparkContext._gateway = SparkContext._jvm = None
