"""A pipeline of two stages: publish valid deliveries of orders, then totals of clients.

    pipeline.py FOLDER FILE...

FOLDER holds the catalog, which is created if it does not exist, and the tables. Each FILE is one
delivery (CSV: id, client, cents). The first stage loads each in a run of its own: on a branch,
which is published if all checks pass. The second stage reads the stream of changes of `main`.
Exits with 1 if a delivery is invalid: its branch remains, and no reader of `main` sees its rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import max_by

from nessie_cli import NessieError, connect, create, run
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.repository.base import Repository
from nessie_cli.runs.context import RunContext
from nessie_cli.runs.publication import ChecksFailed
from nessie_cli.spark import register

SETTINGS = {
    "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.ui.enabled": "false",
}
"""Settings of Spark. Those of the catalog are settings of each run."""
ORDERS = "id BIGINT, client STRING, cents BIGINT"
CHECKS = sorted(Path(__file__).with_name("checks").glob("*.sql"))


def session_of(spark: SparkSession, load: RunContext, pinned: str | None = None) -> SparkSession:
    """Returns a session whose default catalog is the branch of a run.

    With `pinned`, the catalog of this name reads the commit with that hash: a reader who needs one
    state of several tables reads all of them there.
    """
    session = spark.newSession()
    options = {name: value for name, value in load.spark_options().items() if name not in SETTINGS}
    if pinned is not None:
        options |= _at_commit(options, pinned)
    for name, value in options.items():
        session.conf.set(name, value)
    return session


def _at_commit(options: Mapping[str, str], commit: str) -> dict[str, str]:
    """Returns the settings of a catalog `pinned`, which reads one commit."""
    prefix = "spark.sql.catalog.lake"
    pinned = {
        name.replace(prefix, "spark.sql.catalog.pinned"): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
    uri = "spark.sql.catalog.pinned.uri"
    return pinned | {uri: f"{pinned[uri].rpartition('/')[0]}/{commit}"}


def ingest(spark: SparkSession, catalog: Repository, folder: Path, file: Path) -> bool:
    """Loads a delivery in a run, and returns whether it is published.

    The key makes a repetition continue the same run, which has a result if it is published already.
    """
    try:
        with run(
            catalog,
            into="main",
            key=f"ingest-{file.stem}",
            tag=f"release-{file.stem}",
            message=f"orders of {file.stem}",
            warehouse=str(folder / "warehouse"),
        ) as load:
            if load.result:
                print(f"{file.name}: published already")
                return True
            session = session_of(spark, load)
            delivery = session.read.csv(str(file), schema=ORDERS, header=True, mode="FAILFAST")
            delivery.createOrReplaceTempView("delivery")
            session.sql(
                "MERGE INTO shop.orders t USING delivery s ON t.id = s.id"
                " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            for check in CHECKS:
                load.check(str(check))
    except ChecksFailed as error:
        failed = next(result for result in error.results if not result.passed)
        print(f"{file.name}: {Path(failed.check).name} found", *failed.output.splitlines()[1:])
        print(f"{file.name}: refused; the branch {load.branch} shows it")
        return False
    print(f"{file.name}: published as release-{file.stem}")
    return True


def totals(spark: SparkSession, catalog: Repository, folder: Path) -> None:
    """Computes the totals of clients again if orders have changed since the last time.

    The stream has the operations of each new commit of `main`. Its checkpoint is not part of a run:
    Spark writes it after the batch, so a batch whose run has failed is repeated.
    """

    def publish(operations: DataFrame, _: int) -> None:
        orders = operations.where("key = 'shop.orders'")
        (commit,) = orders.agg(max_by("hash", "commit_time")).collect()[0]
        if commit is None:
            return
        with run(
            catalog,
            into="main",
            key=f"totals-{commit}",
            message="totals of clients",
            warehouse=str(folder / "warehouse"),
        ) as load:
            if not load.result:
                session_of(spark, load, pinned=commit).sql(
                    "INSERT OVERWRITE shop.totals"
                    " SELECT client, sum(cents) AS cents FROM pinned.shop.orders GROUP BY client"
                )

    stream = spark.readStream.format("nessie").options(
        url=catalog.url, table="operations", ref="main"
    )
    query = (
        stream.load()
        .writeStream.foreachBatch(publish)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def create_tables(spark: SparkSession, catalog: Repository, folder: Path) -> None:
    """Creates the tables, in a run as well."""
    with run(catalog, into="main", key="tables", warehouse=str(folder / "warehouse")) as load:
        if not load.result:
            session = session_of(spark, load)
            session.sql("CREATE NAMESPACE IF NOT EXISTS shop")
            session.sql(f"CREATE TABLE IF NOT EXISTS shop.orders ({ORDERS})")
            session.sql("CREATE TABLE IF NOT EXISTS shop.totals (client STRING, cents BIGINT)")


def report(store: str, commit: str) -> None:
    """Prints both tables at one commit, so that the totals are those of the orders."""
    lake = NessieCatalog("lake", uri=store, ref=commit)
    for name in ("orders", "totals"):
        rows = lake.load_table(f"shop.{name}").scan().to_arrow().to_pylist()
        print(f"{name}:", *sorted(" ".join(map(str, row.values())) for row in rows), sep="\n  ")


def main(folder: Path, files: list[Path]) -> int:
    """Runs both stages; returns the exit code."""
    for file in files:
        if not file.is_file():
            sys.exit(f"pipeline: {file}: no such file")
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    store = str(folder / "catalog.sqlite")
    if not Path(store).exists():
        create(store).close()
    builder = SparkSession.builder.appName("pipeline")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    with connect(store) as catalog:
        create_tables(spark, catalog, folder)
        published = [ingest(spark, catalog, folder, file) for file in files]
        totals(spark, catalog, folder)
        report(store, catalog.reference("main").hash)
    return 0 if all(published) else 1


if __name__ == "__main__":
    _, *words = sys.argv
    if len(words) <= 1:
        sys.exit(__doc__)
    try:
        sys.exit(main(Path(words[0]), [Path(word) for word in words[1:]]))
    except NessieError as error:
        sys.exit(f"pipeline: {error.message}")
