"""Rows that Spark's executors merge are those of one process.

`NESSIE_TEST_SPARK_ROW_ENGINES=N` is the number of merges of random tables.
"""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

import nessie_cli.spark.row_merge
from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.model import (
    CombinationRules,
    CombinedTable,
    ContentKey,
    IcebergTable,
    RowDecision,
    RowRules,
    row_key_text,
)
from nessie_cli.spark import SparkRows
from tests.iceberg.row_diff.tables import Folder
from tests.iceberg.row_merge.keyed import KeyedTable, Layout, Row, edited, random_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MERGES = int(os.environ.get("NESSIE_TEST_SPARK_ROW_ENGINES", "2"))
KEYS = 24
KEY = ContentKey(("t",))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are merged on Spark, too, in several parts."""
    monkeypatch.setattr(nessie_cli.spark.row_merge, "LEAST", 0)
    monkeypatch.setattr(nessie_cli.spark.row_merge, "ROWS_OF_PART", 12)


def sides(folder: Path, version: int, rng: random.Random) -> list[IcebergTable]:
    """Returns random states: the base, ours and theirs."""
    base = KeyedTable(Folder(folder, version), Layout(size=8))
    base.change({key: random_row(rng) for key in range(0, KEYS, 2)}, "copy", 1)
    base.change(edited(base.rows, rng, KEYS), "positions", 2)
    contents = [base.content([1, 2])]
    kinds = ["copy", "positions", "compact", *(["equality"] if version == 2 else [])]
    for snapshot in (103, 203):
        side = base.fork()
        side.change(edited(edited(base.rows, rng, KEYS), rng, KEYS), rng.choice(kinds), 3, snapshot)
        contents.append(side.content([1, 2, snapshot]))
    return contents


def combined(
    contents: list[IcebergTable],
    spark: SparkSession | None,
    *decisions: RowDecision,
    files: Files | None = None,
    **more: Any,
) -> CombinedTable:
    """Combines states of a table on Spark, or in this process."""
    files = files or Files()
    engine = partial(SparkRows, files, lambda: spark) if spark else None
    rules = CombinationRules(rows=RowRules(decisions=decisions, **more))
    states = TableStates(None, "", KEY, KEY, KEY, KEY, *contents)
    return FileCombiner(files, "a merge", rules, row_engine=engine).combine(states)


def rows_of(content: IcebergTable | None) -> list[str]:
    assert content is not None
    return sorted(map(repr, changed_rows(None, content).read_all().to_pylist()))


def files_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


@pytest.mark.parametrize("seed", range(MERGES))
def test_spark_gives_the_same_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    contents = sides(tmp_path, 2 + seed % 2, rng := random.Random(seed))
    before = files_in(tmp_path)
    local, there = (combined(contents, engine) for engine in (None, spark))
    assert there.collisions == local.collisions
    if local.collisions:
        assert files_in(tmp_path) == before
        decisions = [
            RowDecision(KEY, row_key_text(each.key), each.column, rng.random() < 0.5)
            for each in local.collisions[0].rows
        ]
        local, there = (combined(contents, engine, *decisions) for engine in (None, spark))
    assert there.combination
    assert local.combination
    # Each part has new data files of its own.
    assert replace(there.combination, added_files=0) == replace(local.combination, added_files=0)
    assert rows_of(there.content) == rows_of(local.content)


def states(folder: Path, *changed: dict[int, Row]) -> list[IcebergTable]:
    """Returns the base, and sides that write each row again, some with other values."""
    rng = random.Random(1)
    base = KeyedTable(Folder(folder, 2), Layout())
    rows = {key: {**random_row(rng), "text": str(key // 4)} for key in range(KEYS)}
    base.change(rows, "copy", 1)
    contents = [base.content([1])]
    for snapshot, values in enumerate(changed, 100):
        side = base.fork()
        new = {key: {**row, **values.get(key, {})} for key, row in rows.items()}
        side.change(new, "compact", 2, snapshot)
        contents.append(side.content([1, snapshot]))
    return contents


class IllDisk(Files):
    """Files of a process that ends at the first new file: after that was written."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._mark = folder / "ill"

    def write(self, uri: str, data: bytes) -> None:
        super().write(uri, data)
        if not self._mark.exists():
            self._mark.touch()
            raise RuntimeError


def test_a_repeated_task_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    contents = states(tmp_path, {1: {"number": 7.0}}, {2: {"number": 8.0}, 20: {"number": 9.0}})
    before = files_in(tmp_path)
    local = combined(contents, None)
    between = files_in(tmp_path)
    there = combined(contents, spark, files=IllDisk(tmp_path))
    assert (tmp_path / "ill").exists()
    assert rows_of(there.content) == rows_of(local.content)
    assert there.combination
    assert len(files_in(tmp_path) - between) == there.combination.added_files
    assert between - before


def test_duplicate_keys_are_named(spark: SparkSession, tmp_path: Path) -> None:
    contents = states(tmp_path, {1: {"number": 7.0}}, {2: {"number": 8.0}, 20: {"number": 9.0}})
    local, there = (combined(contents, engine, key=("text",)) for engine in (None, spark))
    assert "several rows have the same key" in str(local.collisions)
    assert there.collisions == local.collisions


def test_an_error_is_that_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    contents = states(tmp_path, {1: {"number": 7.0}}, {2: {"number": 8.0}})
    newest = max(files_in(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    with pytest.raises(MissingFile, match=f"{newest.name}: no such file"):
        combined(contents, spark)
