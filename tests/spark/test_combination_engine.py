"""Tables that Spark's executors combine are those of one process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nessie_cli.spark.combination
from nessie_cli.iceberg.combination.combination import combine
from nessie_cli.iceberg.combination.file_combiner import UnwrittenFiles
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.spark import SparkEngine
from tests.cli import lake
from tests.command.in_process import InProcess
from tests.iceberg.combination.engines import Sides, manifests_of, random_sides, result_of
from tests.iceberg.combination.test_combination import Lake, append, path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are combined on Spark, too."""
    monkeypatch.setattr(nessie_cli.spark.combination, "LEAST", 0)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(10, 14))
def test_spark_gives_the_same_table(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    lake = Lake(tmp_path, 1 + seed % 2)
    sides = random_sides(lake, random.Random(seed))
    engine = SparkEngine(Files(), lambda: spark)
    assert result_of(lake, sides, engine) == result_of(lake, sides)


def two_appends(folder: Path) -> tuple[Lake, Sides]:
    lake = Lake(folder, 2)
    return lake, Sides(lake.base, lake.branch("ours", append(10)), lake.branch("theirs", append(5)))


@pytest.mark.usefixtures("eager")
def test_a_missing_manifest_is_the_same_error(spark: SparkSession, tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)
    (new, *_) = manifests_of(lake._document(sides.theirs)["snapshots"][-1]["manifest-list"])
    path_of(new.path).unlink()
    with pytest.raises(MissingFile, match=f"{path_of(new.path).name}: no such file"):
        result_of(lake, sides, SparkEngine(Files(), lambda: spark))


@pytest.mark.usefixtures("eager")
def test_files_of_a_dry_run_reach_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)
    files = UnwrittenFiles(Files())
    for path in tmp_path.rglob("*-m*.avro"):
        files.write(path.as_uri(), path.read_bytes())
        path.unlink()
    documents = [lake._document(location) for location in sides]
    engine = SparkEngine(files, lambda: spark)
    combination = combine(*documents, read=files.read, engine=engine)
    assert [each.file.records for each in combination.files.added] == [1]


def test_few_manifests_do_not_start_spark(tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)

    def start() -> SparkSession:
        raise AssertionError

    assert result_of(lake, sides, SparkEngine(Files(), start)) == result_of(lake, sides)


@pytest.mark.usefixtures("eager")
def test_a_merge_runs_on_spark(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nessie = InProcess(tmp_path, "Eva <eva@example.org>", monkeypatch, capsys)
    assert nessie("config", "unset", "--user", "merge.tables").code == 0
    assert nessie("init").code == 0
    two_sides = lake.Lake(str(tmp_path / ".nessie" / "store.sqlite"), tmp_path)
    two_sides.append("main", 10)
    two_sides.append("dev", 20)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    for options in (["--dry-run"], []):
        assert "combined" in nessie("merge", "dev", "--engine", "spark", *options).out
    assert len(tracker.getJobIdsForGroup()) - before >= 4
    assert two_sides.ids("main") == [1, 2, 3, 10, 20]
