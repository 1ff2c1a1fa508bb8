"""Spark goes on writing an imported table in its Hadoop catalog, and `gc` keeps its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from nessie_cli.gc.mark import mark
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.newest import newest_metadata
from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.model import ContentKey
from nessie_cli.spark.mark import gc_mark
from nessie_cli.spark.plan import gc_plan
from tests.gc.lakes import Shore, candidates, needed, shore
from tests.spark.iceberg import MISSING, RUNTIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
KEY = ContentKey(("db", "t"))
OURS = pa.table({"id": pa.array([7, 8], pa.int64()), "name": ["x", "y"]})


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


def test_spark_reads_its_table_after_collections_with_our_commits_on_top(
    spark: SparkSession, lake: Shore
) -> None:
    catalog = "spark.sql.catalog.source"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", str(lake.warehouse))

    def sql(text: str) -> list[int]:
        return [row[0] for row in spark.sql(text).collect()]

    def read() -> list[int]:
        spark.sql("REFRESH TABLE source.db.t")
        return sql("SELECT id FROM source.db.t ORDER BY id")

    sql("CREATE TABLE source.db.t (id bigint, name string) USING iceberg")
    sql("INSERT INTO source.db.t VALUES (1, 'a'), (2, 'b')")
    location = str(lake.warehouse / "db" / "t")
    metadata = newest_metadata(location, {})
    row = ImportedTable(KEY.elements, KEY, location, metadata, metadata)
    ImportRecords(lake.repository).put("source", "source", [row])
    lake.on().register_table("db.t", metadata)
    lake.on().load_table("db.t").append(OURS)

    for engine in ({}, {"marking": gc_mark, "planning": gc_plan}):
        sql("INSERT INTO source.db.t VALUES (3, 'c')")
        sql("DELETE FROM source.db.t WHERE id = 1")
        rows = read()
        before = lake.files()
        run = lake.planned(lake.settings("1"), **engine)
        assert candidates(run) == []
        (finding,) = run.dataset("plan-findings").records()
        assert (finding["kind"], finding["location"]) == ("IMPORTED", normalised(location))
        lake.applied(run, engine.get("marking", mark))
        assert lake.files() == before
        assert read() == rows
        ours = lake.on().load_table("db.t").scan().to_arrow()
        assert sorted(ours["id"].to_pylist()) == [1, 2, 7, 8]

    ImportRecords(lake.repository).adopt([KEY])
    stay, _ = needed(lake.repository, 1, listed=True)
    run = lake.planned(lake.settings("1"))
    assert candidates(run)
    lake.applied(run)
    left = {path for path in lake.files() if not path.endswith(".crc")}
    assert left == {path for path in stay if not path.endswith(".crc")}
