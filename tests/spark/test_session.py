"""The data source in a real session: schemas, batches, filters, commits and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nessie_cli import NessieError, connect
from nessie_cli.spark import nessie_errors, register
from nessie_cli.spark.tables import TABLES
from tests.repository.vocabulary import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def nessie(spark: SparkSession, url: str, **options: str) -> DataFrame:
    return (
        spark.read.format("nessie")
        .options(url=url, **{name.rstrip("_"): value for name, value in options.items()})
        .load()
    )


def test_all_tables_in_one_query(spark: SparkSession, store: str) -> None:
    # The metadata files of this catalog do not exist. test_audit has tables with files.
    files = {"prefix": "no.files"}
    more = {
        "diff": {"from_": "main", "to": "dev"},
        "conflicts": {"from_": "dev", "to": "main"},
        "audit": files,
        "sizes": files,
    }
    counts = None
    for name, table in TABLES.items():
        frame = nessie(spark, store, table=name, **more.get(name, {}))
        assert frame.schema.jsonValue() == table.schema.jsonValue(), "comments too"
        # Every column is read, because Arrow's types must be those of the schema.
        whole = frame.selectExpr(f"'{name}' as name", "length(to_json(struct(*))) as length")
        counts = whole if counts is None else counts.union(whole)
    assert counts is not None
    found = {
        row["name"]: row["count"]
        for row in counts.where("length > 20").groupBy("name").count().collect()
    }
    with connect(store) as repository:
        assert found == {
            "references": 4,
            "log": len(list(repository.log("main"))),
            "operations": sum(
                len(entry.operations or ()) for entry in repository.log("main", operations=True)
            ),
            "entries": len(list(repository.entries("main"))),
            "contents": len(list(repository.entries("main"))),
            "diff": len(list(repository.diff("main", "dev"))),
            "reflog": len(list(repository.reflog())),
            "conflicts": 1,
        }


def test_filters_reach_the_store_and_times_are_instants(spark: SparkSession, store: str) -> None:
    with connect(store) as repository:
        middle = repository.commit_at("main~5").meta.commit_time
    assert middle is not None
    frame = nessie(spark, store, table="operations").where(
        f"key in ('db.t1', 'db.t3') and commit_time <= timestamp '{middle.isoformat()}'"
    )
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan, plan
    found = [(row["hash"], row["key"]) for row in frame.select("hash", "key").collect()]
    with connect(store) as repository:
        assert sorted(found) == sorted(
            (entry.hash, str(operation.key))
            for entry in repository.log("main~5", operations=True)
            for operation in entry.operations or ()
            if str(operation.key) in ("db.t1", "db.t3")
        )


def test_errors_reach_the_driver_as_one_line(spark: SparkSession, store: str) -> None:
    with (
        pytest.raises(
            NessieError, match=r"^nessie: sqlite:.*, table log: Named reference 'gone' not found$"
        ),
        nessie_errors(),
    ):
        nessie(spark, store, table="log", ref="gone")
    frame = nessie(spark, store, table="conflicts", from_="dev", to="late")
    with connect(store) as repository:
        repository.delete_reference("late", expected_hash=repository.reference("late").hash)
    with (
        pytest.raises(
            NessieError, match=r"^nessie: sqlite:.*, table conflicts: .*late.* not found$"
        ),
        nessie_errors(),
    ):
        frame.collect()


def test_a_task_that_fails_leaves_no_commit(spark: SparkSession, store: str) -> None:
    with connect(store) as repository:
        before = Catalog(repository).head()
    frame = spark.range(0, 12, 1, 2).selectExpr(
        "if(id = 11, 'DROP', 'DELETE') as operation", "concat('db.t', id) as key"
    )
    with (
        pytest.raises(
            NessieError,
            match=r"row db.t11: operation 'DROP' is unknown. Hint: use PUT, DELETE, UNCHANGED$",
        ),
        nessie_errors(),
    ):
        frame.write.format("nessie").mode("append").options(url=store, message="half").save()
    with connect(store) as repository:
        assert Catalog(repository).head() == before


def test_each_session_registers_for_itself(spark: SparkSession, store: str) -> None:
    other = spark.newSession()
    register(other)
    register(spark)
    assert nessie(other, store, table="log").schema == nessie(spark, store, table="log").schema
