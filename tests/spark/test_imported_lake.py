"""A warehouse of Spark's Hadoop catalog is imported, branched, merged and exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.importing.newcomer import Newcomer, names
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.sessions import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)


def test_a_lake_of_sparks_hadoop_catalog(spark: SparkSession, tmp_path: Path) -> None:
    tables = names()
    warehouse = tmp_path / "warehouse"
    session = spark.newSession()
    for name, value in {
        **SMALL_TABLES,
        "spark.sql.catalog.theirs": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.theirs.type": "hadoop",
        "spark.sql.catalog.theirs.warehouse": f"file:{warehouse}",
        "spark.sql.catalog.theirs.cache-enabled": "false",
    }.items():
        session.conf.set(name, value)
    for name in tables:
        session.sql(f"CREATE TABLE theirs.{name} USING iceberg AS SELECT 1L AS id")
    newcomer = Newcomer(tmp_path / "ours")

    planned = newcomer("import", str(warehouse), "--dry-run", "--json").json
    imported = newcomer("import", str(warehouse), "--json").json
    assert imported["contents"] == planned["contents"]
    assert imported["counts"]["imported"] == len(tables)
    assert (imported["problems"], imported["leftOut"]) == ([], [])
    newcomer("audit")

    session.sql(f"INSERT INTO theirs.{tables[1]} VALUES (2)")
    again = newcomer("import", str(warehouse), "--update", "--json").json["counts"]
    assert (again["updated"], again["unchanged"]) == (1, len(tables) - 1)

    changed = newcomer.change_on_a_branch_and_merge(tables, pa.table({"id": [3]}))
    expected = {name: 1 + (name in changed) for name in tables} | {tables[0]: 3, tables[1]: 2}
    assert newcomer.leave() == expected
    # Neither our commits nor our files are visible at the source.
    session.sql(f"INSERT INTO theirs.{tables[0]} VALUES (5)")
    rows = session.sql(f"SELECT id FROM theirs.{tables[0]} ORDER BY id").collect()
    assert [row[0] for row in rows] == [1, 5]
    refused = newcomer("import", str(warehouse), "--update", code=3)
    assert f"{tables[0]}: it was changed here" in refused.err
    rest = newcomer("import", str(warehouse), "--update", "--exclude", tables[0], "--json").json
    assert (rest["counts"]["unchanged"], rest["counts"]["changedHere"]) == (
        len(tables) - len(changed),
        len(changed) - 1,
    )
    newcomer.report()
