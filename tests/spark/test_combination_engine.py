"""Tables that Spark's executors combine are those of one process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.iceberg.combination.combination import combine
from nessie_cli.iceberg.combination.file_combiner import UnwrittenFiles
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.spark import SparkEngine
from tests.iceberg.combination.engines import Sides, manifests_of, random_sides, result_of
from tests.iceberg.combination.test_combination import Lake, append, path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("seed", range(10, 14))
def test_spark_gives_the_same_table(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    lake = Lake(tmp_path, 1 + seed % 2)
    sides = random_sides(lake, random.Random(seed))
    engine = SparkEngine(Files(), lambda: spark, least=0)
    assert result_of(lake, sides, engine) == result_of(lake, sides)


def two_appends(folder: Path) -> tuple[Lake, Sides]:
    lake = Lake(folder, 2)
    return lake, Sides(lake.base, lake.branch("ours", append(10)), lake.branch("theirs", append(5)))


def test_a_missing_manifest_is_the_same_error(spark: SparkSession, tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)
    (new, *_) = manifests_of(lake._document(sides.theirs)["snapshots"][-1]["manifest-list"])
    path_of(new.path).unlink()
    with pytest.raises(MissingFile, match=f"{path_of(new.path).name}: no such file"):
        result_of(lake, sides, SparkEngine(Files(), lambda: spark, least=0))


def test_files_of_a_dry_run_reach_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)
    files = UnwrittenFiles(Files())
    for path in tmp_path.rglob("*-m*.avro"):
        files.write(path.as_uri(), path.read_bytes())
        path.unlink()
    documents = [lake._document(location) for location in sides]
    engine = SparkEngine(files, lambda: spark, least=0)
    combination = combine(*documents, read=files.read, engine=engine)
    assert [each.file.records for each in combination.files.added] == [1]


def test_few_manifests_do_not_start_spark(tmp_path: Path) -> None:
    lake, sides = two_appends(tmp_path)

    def start() -> SparkSession:
        raise AssertionError

    assert result_of(lake, sides, SparkEngine(Files(), start)) == result_of(lake, sides)
