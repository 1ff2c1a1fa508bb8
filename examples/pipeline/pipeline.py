"""Ingest on a branch, validate with Spark, merge the valid deliveries, tag the release.

    pipeline.py FOLDER FILE...

FOLDER holds the catalog, which is created if it does not exist, and the tables. Each FILE is one
delivery of orders (CSV: id, client, cents), and one release if it is valid. Exits with 1 if a file
is invalid: its branch remains for inspection, and no reader of `main` sees its rows.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from nessie_cli import CommitMeta, MergeOptions, NessieError, ReferenceType, connect, create
from nessie_cli.repository.base import Repository

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
ORDERS = "id BIGINT, client STRING, cents BIGINT"

CHECKS = {
    "an order has a client": "SELECT id FROM {orders} WHERE client IS NULL OR client = ''",
    "an amount is positive": "SELECT id FROM {orders} WHERE cents IS NULL OR cents <= 0",
    "an order is there once": "SELECT id FROM {orders} GROUP BY id HAVING count(*) > 1",
    "no order has gone": "SELECT id FROM {before} EXCEPT SELECT id FROM {orders}",
}
"""The rules, each with a query that returns the orders that violate it."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yields the address of a `nessie serve` over the catalog of a folder, on a free port.

    In production, the server is running already.
    """
    store = f"sqlite:///{folder.absolute()}/catalog.sqlite"
    command = [sys.executable, "-m", "nessie_cli", "--store", store, "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        try:
            said = server.stderr.readline()
            address = re.search(r"http://\S+?:\d+", said)
            if not address:
                sys.exit(said + server.stderr.read())
            yield address[0]
        finally:
            server.terminate()


def session(address: str, warehouse: Path) -> SparkSession:
    """Returns a Spark session with the server as the catalog `lake`."""
    settings = {
        "spark.jars.packages": ICEBERG,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "nessie",
        "spark.sql.catalog.lake.uri": f"{address}/api/v2",
        "spark.sql.catalog.lake.warehouse": str(warehouse.absolute()),
        # Branches are merged outside of Spark, so each query must load the table again.
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.appName("pipeline")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def load(spark: SparkSession, file: Path, orders: str) -> None:
    """Loads a delivery into the table: inserts new orders, and updates existing ones."""
    spark.read.csv(str(file), schema=ORDERS, header=True, mode="FAILFAST").createOrReplaceTempView(
        "delivery"
    )
    spark.sql(
        f"MERGE INTO {orders} t USING delivery s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT *"
    )


def faults(spark: SparkSession, orders: str, before: str) -> list[str]:
    """Returns the violated rules, each with the ids of its orders."""
    found = {
        check: spark.sql(query.format(orders=orders, before=before)).limit(10).collect()
        for check, query in CHECKS.items()
    }
    return [
        f"not so: {check} (id {', '.join(str(row.id) for row in rows)})"
        for check, rows in found.items()
        if rows
    ]


def release(spark: SparkSession, catalog: Repository, file: Path) -> bool:
    """Loads one delivery on its own branch, and merges it into `main` if all checks pass."""
    branch = f"ingest-{file.stem}"
    catalog.create_reference(ReferenceType.BRANCH, branch, catalog.reference("main").hash)
    orders = f"lake.shop.`orders@{branch}`"
    load(spark, file, orders)
    wrong = faults(spark, orders, before="lake.shop.orders")
    if wrong:
        print(
            *(f"{file.name}: {fault}" for fault in wrong),
            f"{file.name}: refused; the branch {branch} shows it",
            sep="\n",
        )
        return False
    merged = catalog.merge(
        "main",
        branch,
        MergeOptions(meta=CommitMeta(f"orders of {file.stem}", authors=("pipeline",))),
    )
    assert merged.resultant_hash, "a conflict raises"
    catalog.create_reference(ReferenceType.TAG, f"release-{file.stem}", merged.resultant_hash)
    catalog.delete_reference(branch, expected_hash=catalog.reference(branch).hash)
    print(f"{file.name}: released as release-{file.stem}")
    return True


def main(folder: Path, files: list[Path]) -> int:
    """Releases files, one after another; returns the exit code."""
    for file in files:
        if not file.is_file():
            sys.exit(f"pipeline: {file}: no such file")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "catalog.sqlite").exists():
        create(str(folder / "catalog.sqlite")).close()
    with served(folder) as address, connect(f"{address}/api/v2") as catalog:
        spark = session(address, folder / "warehouse")
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
        spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.orders ({ORDERS})")
        passed = [release(spark, catalog, file) for file in files]
        spark.table("lake.shop.orders").orderBy("id").show()
    return 0 if all(passed) else 1


if __name__ == "__main__":
    _, *words = sys.argv
    if len(words) <= 1:
        sys.exit(__doc__)
    try:
        sys.exit(main(Path(words[0]), [Path(word) for word in words[1:]]))
    except NessieError as error:
        sys.exit(f"pipeline: {error.message}")
