"""The table `rows`: changed rows, divided by files, and without rewritten rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nessie_cli.repository.opening import create
from nessie_cli.spark.errors import TaskError
from nessie_cli.spark.rows import without_rewritten
from nessie_cli.spark.source import register
from tests.cli.lake import Lake
from tests.spark.reading import Frame


@pytest.fixture
def lake_url(tmp_path: Path) -> str:
    """main has the rows 1, 2, 3; dev has 1, 3 (rewritten), 7, 8."""
    url = str(tmp_path / "lake.sqlite")
    create(url).close()
    lake = Lake(url, tmp_path)
    lake.append("dev", 7, 8)
    lake.delete("dev", 2)
    return url


def test_each_file_is_a_part_with_its_rows(lake_url: str) -> None:
    frame = Frame(lake_url, table="rows", from_="main", to="dev", key="db.t")
    rows = frame.rows()
    assert frame.schema.names == ["_change_type", "_row_hash", "id", "v", "n"]
    assert len(frame.parts) == 3
    assert sorted((row["_change_type"], row["id"]) for row in rows) == [
        *(("DELETE", number) for number in (1, 2, 3)),
        *(("INSERT", number) for number in (1, 3, 7, 8)),
    ]
    assert len({row["_row_hash"] for row in rows}) == 5


def test_rewritten_rows_cancel_out_in_spark(spark: SparkSession, lake_url: str) -> None:
    register(spark)
    options = {"url": lake_url, "table": "rows", "from": "main", "to": "dev", "key": "db.t"}
    changes = spark.read.format("nessie").options(**options).load()
    rows = without_rewritten(changes).select("_change_type", "id").collect()
    assert sorted(map(tuple, rows)) == [("DELETE", 2), ("INSERT", 7), ("INSERT", 8)]


def test_rows_are_a_multiset(spark: SparkSession) -> None:
    given = [("DELETE", b"a"), ("DELETE", b"a"), ("INSERT", b"a"), ("INSERT", b"b")]
    changes = spark.createDataFrame(
        [(*each, 1) for each in given], "_change_type string, _row_hash binary, v int"
    )
    rows = without_rewritten(changes).collect()
    assert sorted(map(tuple, rows)) == [("DELETE", 1), ("INSERT", 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"from_": "main"}, "option 'key' is missing"),
        ({"key": "db.t"}, "option 'from' is missing"),
        ({"from_": "main", "key": "db.x"}, "neither revision has a content db.x"),
        ({"from_": "main", "key": "db"}, "db is not an Iceberg table"),
    ],
)
def test_a_wrong_option_is_an_error(lake_url: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        Frame(lake_url, table="rows", to="dev", **options)
