"""The garbage collections on Spark and on one machine have the same results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.gc.removal import RemovalOutcome
from nessie_cli.gc.run import Run
from nessie_cli.model import CommitMeta, ContentKey, DeltaLakeTable, Put
from nessie_cli.spark.mark import gc_mark
from nessie_cli.spark.plan import gc_plan
from tests.gc.lakes import ROWS, Shore, candidates, scribble, shore


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


def rows(run: Run, name: str, *columns: str) -> list[Any]:
    return sorted(
        str({column: record[column] for column in columns})
        for record in run.dataset(name).records()
    )


DATASETS = {
    "live": ["path", "kind"],
    "bases": ["base", "content_id", "key"],
    "findings": ["kind", "content_id", "key", "reference", "location", "base", "message"],
    "plan-findings": ["kind", "key", "location", "message"],
    "listed": ["path", "location", "size", "modified", "base"],
    "candidates": ["path", "location", "size", "modified", "base", "content_ids"],
}


def break_things(lake: Shore, tmp_path: Path) -> None:
    """A lake with a table for each kind of result."""
    for name in ("torn", "cut", "lost", "dead"):
        table = lake.create(name)
        table.append(ROWS)
        manifest = Path(table.current_snapshot().manifests(table.io)[0].manifest_path)
        match name:
            case "torn":
                manifest.write_bytes(b"no Avro")
            case "cut":
                Path(table.current_snapshot().manifest_list).unlink()
            case "lost":
                Path(table.metadata_location).write_text("{")
            case _:
                lake.on().drop_table("db.dead")
                for path in Path(table.location()).rglob("*.metadata.json"):
                    path.write_text("")
    lake.create("elsewhere", **{"write.data.path": str(tmp_path / "outside")})
    delta = DeltaLakeTable(
        metadata_location_history=(f"{lake.warehouse}/delta/_delta_log/1.json",),
        checkpoint_location_history=(),
        last_checkpoint=None,
    )
    lake.repository.commit(
        "main", [Put(ContentKey(("delta",)), delta)], CommitMeta("another format")
    )


def test_both_engines_have_the_same_results(spark, lake, tmp_path):
    seed = random.randrange(2**32)
    scribble(lake, random.Random(seed), 8)
    break_things(lake, tmp_path)
    settings = lake.settings("2")
    local, on_spark = lake.planned(settings), lake.planned(settings, gc_mark, gc_plan)
    for name, columns in DATASETS.items():
        found = rows(on_spark, name, *columns)
        if name == "live":
            assert len(found) == len(set(found))
            assert found == sorted(set(rows(local, name, *columns))), f"seed {seed}: {name}"
        else:
            assert found == rows(local, name, *columns), f"seed {seed}: {name}"
    assert {record["kind"] for record in on_spark.dataset("findings").records()} == {
        "BROKEN",
        "FOREIGN",
        "UNKNOWN_PLACE",
    }
    names = [
        record["path"].endswith(".metadata.json")
        for record in on_spark.dataset("candidates").records(["path"])
    ]
    assert names == sorted(names), "metadata files come last"
    schema = next(iter(on_spark.dataset("candidates").batches())).schema
    assert (
        schema.field("modified").type
        == next(iter(local.dataset("candidates").batches())).schema.field("modified").type
    )

    before = lake.files()
    assert lake.applied(on_spark, gc_mark).outcomes == {
        RemovalOutcome.DELETED: local.info.counts["candidates"],
        RemovalOutcome.GONE: 0,
    }
    assert before - lake.files() == set(candidates(local))
    assert candidates(lake.planned(settings)) == [], f"seed {seed}: nothing is left"
