"""From a mark to candidates, on real tables: exactly the files that no live commit needs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.gc.mark import mark
from nessie_cli.gc.parts import GcFinding
from nessie_cli.gc.plan import plan, scope_of
from nessie_cli.gc.schemas import BASES, FINDINGS
from nessie_cli.iceberg.locations import probable_location
from nessie_cli.model import CommitMeta, ContentKey, Delete, DeltaLakeTable, IcebergTable, Put
from tests.gc.lakes import (
    ROWS,
    Shore,
    candidates,
    findings,
    live_tables,
    needed,
    now,
    opened,
    scribble,
    shore,
    silent,
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


def remove(paths: list[str]) -> None:
    for path in paths:
        Path(path).unlink()


@pytest.mark.parametrize(
    ("cutoff", "commits", "listed"), [("NONE", None, True), ("2", 2, True), ("1", 1, False)]
)
def test_without_the_candidates_exactly_the_live_snapshots_remain_readable(
    lake, cutoff, commits, listed
):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    scribble(lake, chance, 18)
    stay, rows = needed(lake.repository, commits, listed=listed)
    before = lake.files()
    run = lake.planned(lake.settings(cutoff, "listed" if listed else "referenced"))
    found = candidates(run)
    assert findings(run.marks()) == [], f"seed {seed}"
    assert before - set(found) == stay, f"seed {seed}"
    assert len(found) == len(set(found)), f"seed {seed}"
    metadata = [path.endswith(".metadata.json") for path in found]
    assert metadata == sorted(metadata), f"seed {seed}: metadata files are the last"
    remove(found)
    assert needed(lake.repository, commits, listed=listed) == (stay, rows), (
        f"seed {seed}: every row of every snapshot"
    )


def test_two_contents_at_one_location_keep_each_others_files(lake):
    lake.create("t")
    lake.on().drop_table("db.t")
    lake.create("t")
    lake.branch_off("dev")
    lake.on("dev").drop_table("db.t")
    lake.create("t", "dev")
    ids = {
        lake.repository.content(branch, ContentKey(("db", "t"))).id for branch in ("main", "dev")
    }
    assert len(ids) == 2
    (first, _), (second, _) = sorted(live_tables(lake.repository, 1))
    stay = opened(first, -1, listed=True)[0] | opened(second, -1, listed=True)[0]
    run = lake.planned(lake.settings("1"))
    assert lake.files() - set(candidates(run)) == stay
    assert candidates(run)
    assert all(
        ids < set(record["content_ids"]) for record in run.dataset("candidates").records()
    ), "the one that was dropped as well"


def test_all_files_of_a_dropped_table_are_candidates_even_of_a_deleted_branch(lake):
    lake.create("kept")
    lake.branch_off("dev")
    lake.create("gone", "dev")
    head = lake.repository.reference("dev")
    lake.repository.delete_reference("dev", expected_hash=head.hash)
    run = lake.planned(lake.settings("1"))
    there = {path for path in lake.files() if "/db/gone/" in path}
    assert there
    assert there <= set(candidates(run))
    remove(candidates(run))
    again = lake.planned(lake.settings("1"))
    assert candidates(again) == []
    assert findings(again.marks()) == [], "what was collected before is no fault"


@pytest.mark.parametrize("broken", ["metadata", "manifest"])
def test_a_broken_content_protects_its_location_only(lake, broken):
    for name in ("sound", "sick"):
        table = lake.create(name)
        table.append(ROWS)
        lake.on().drop_table(f"db.{name}")
        lake.create(name)
    lake.create("gone")
    lake.on().drop_table("db.gone")
    sick = lake.on().load_table("db.sick")
    path = Path(
        sick.metadata_location
        if broken == "metadata"
        else sick.current_snapshot().manifests(sick.io)[0].manifest_path
    )
    path.write_bytes(path.read_bytes()[:100])
    run = lake.planned(lake.settings("1"))
    (finding,) = findings(run.marks())
    assert (finding["kind"], finding["key"], finding["location"], finding["base"]) == (
        "BROKEN",
        "db.sick",
        str(path),
        sick.location(),
    )
    assert "main" in finding["message"]
    found = candidates(run)
    assert found
    assert {Path(path).parents[1].name for path in found} == {"sound", "gone"}


def test_a_file_younger_than_the_grace_period_is_kept(lake):
    table = lake.create("t")
    base = Path(table.location())
    now = datetime.now(UTC).timestamp()
    for name, age in {"old": 3 * 86400 + 60, "young": 3 * 86400 - 60}.items():
        (base / "data" / name).write_text("an orphan")
        os.utime(base / "data" / name, (now - age, now - age))
    grace = int(timedelta(days=3).total_seconds())
    assert [Path(path).name for path in candidates(lake.planned(lake.settings(grace=grace)))] == [
        "old"
    ]
    run = lake.planned(lake.settings(grace=0))
    assert sorted(Path(path).name for path in candidates(run)) == ["old", "young"]


def test_a_checksum_of_hadoop_is_kept_or_deleted_with_its_file(lake):
    old = lake.create("t")
    lake.on().drop_table("db.t")
    table = lake.create("t")
    for metadata in (old.metadata_location, table.metadata_location):
        path = Path(metadata)
        path.with_name(f".{path.name}.crc").write_text("crc")
    found = {Path(path).name for path in candidates(lake.planned(lake.settings("1")))}
    assert f".{Path(old.metadata_location).name}.crc" in found
    assert f".{Path(table.metadata_location).name}.crc" not in found


def test_locations_outside_of_the_warehouses_are_reported_and_kept(lake, tmp_path):
    table = lake.create("t")
    lake.create("elsewhere", **{"write.data.path": str(tmp_path / "warehouse-2")})
    orphan = Path(table.location()) / "data" / "orphan"
    orphan.write_text("x")
    (tmp_path / "warehouse-2" / "orphan").write_text("x")
    run = lake.planned(lake.settings())
    assert candidates(run) == [str(orphan)]
    (finding,) = run.dataset("plan-findings").records()
    assert (finding["kind"], finding["location"]) == ("OUTSIDE", str(tmp_path / "warehouse-2"))
    both = lake.planned(
        lake.settings(warehouse=(f"file://{lake.warehouse}/", str(tmp_path / "warehouse-2")))
    )
    assert len(candidates(both)) == 2


@pytest.mark.parametrize(
    ("warehouse", "message"),
    [((), "there is no warehouse"), (("lake",), "warehouse lake is not absolute")],
)
def test_a_warehouse_is_required(lake, warehouse, message):
    with pytest.raises(InvalidInput, match=message):
        lake.planned(lake.settings(warehouse=warehouse))


def test_a_table_that_contains_everything_collects_no_file_of_others(lake, tmp_path):
    outer = lake.on().create_table("db.outer", ROWS.schema, location=str(tmp_path))
    inner = lake.create("inner")
    outer.append(ROWS)
    run = lake.planned(lake.settings(warehouse=(str(tmp_path),)))
    assert candidates(run) == []
    (tmp_path / "orphan").write_text("x")
    (Path(inner.location()) / "orphan").write_text("x")
    run = lake.planned(lake.settings(warehouse=(str(tmp_path),)))
    found = {record["path"]: record["base"] for record in run.dataset("candidates").records()}
    assert found == {
        str(tmp_path / "orphan"): str(tmp_path),
        f"{inner.location()}/orphan": inner.location(),
    }


def test_a_whole_file_system_is_not_collected(lake):
    lake.repository.commit(
        "main", [Put(ContentKey(("root",)), root_table(lake))], CommitMeta("a table at /")
    )
    run = lake.planned(lake.settings(warehouse=("/",)))
    assert [finding["kind"] for finding in run.dataset("plan-findings").records()] == ["OUTSIDE"]
    assert candidates(run) == []


WHOLE = "which is a whole file system or bucket"
OUTSIDE = "which is outside of the warehouses"


@pytest.mark.parametrize(
    ("base", "warehouse", "reason"),
    [
        ("s3://lake", "s3://lake", WHOLE),
        ("s3://lake", "s3://lake/", WHOLE),
        ("s3://lake", "s3a://lake", WHOLE),
        ("/", "/", WHOLE),
        ("s3://lake/db", "s3://lake", None),
        ("s3://lake/db/t", "s3://lake/db", None),
        ("/lake", "/", None),
        ("s3://lake", "s3://lake/db", OUTSIDE),
        ("s3://lakes/db", "s3://lake", OUTSIDE),
        ("gs://lake", "gs://lake", WHOLE),
    ],
)
def test_locations_of_candidates(lake, base, warehouse, reason):
    settings = lake.settings(warehouse=(warehouse,))
    run = lake.runs.new(settings, now())
    with run.marks().bases.writing(BASES) as write:
        write(pa.table([[base], ["1"], ["db.t"]], schema=BASES))
    with run.marks().findings.writing(FINDINGS):
        pass
    findings: list[GcFinding] = []
    scope = scope_of(run, settings, findings.append)
    assert scope.roots == (() if reason else (base,))
    assert [finding.kind for finding in findings] == (["OUTSIDE"] if reason else [])
    assert all(str(reason) in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://lake/db/t/metadata/1.json", "s3://lake/db/t"),
        ("s3a://lake/db/d/_delta_log/1.json", "s3://lake/db/d"),
        ("s3://lake/db/t/1.json", "s3://lake/db/t"),
        ("/lake/db/t/metadata/1.json", "/lake/db/t"),
        ("/metadata/1.json", "/metadata"),
        ("/lake/1.json", "/lake"),
        ("not/absolute", "not/absolute"),
    ],
)
def test_the_probable_location_of_a_table_with_an_unreadable_metadata_file(location, place):
    assert probable_location(location) == place


def root_table(lake: Shore) -> IcebergTable:
    table = lake.create("t")
    path = lake.folder / "root.metadata.json"
    text = (
        Path(table.metadata_location)
        .read_text()
        .replace(f'"location":"{table.location()}"', '"location":"/"')
    )
    path.write_text(text)
    content = lake.repository.content("main", ContentKey(("db", "t")))
    assert isinstance(content, IcebergTable)
    lake.repository.commit("main", [Delete(ContentKey(("db", "t")))], CommitMeta("drop"))
    return IcebergTable(metadata_location=str(path), snapshot_id=content.snapshot_id)


def test_tables_of_other_formats_are_kept(lake):
    place = lake.warehouse / "db" / "delta"
    (place / "_delta_log").mkdir(parents=True)
    (place / "_delta_log" / "1.json").write_text("{}")
    around = lake.on().create_table("db.around", ROWS.schema, location=str(lake.warehouse / "db"))
    delta = DeltaLakeTable(
        metadata_location_history=(f"{place}/_delta_log/1.json",),
        checkpoint_location_history=(),
        last_checkpoint=None,
    )
    lake.repository.commit(
        "main", [Put(ContentKey(("delta",)), delta)], CommitMeta("another format")
    )
    run = lake.planned(lake.settings())
    assert around.location() in {record["base"] for record in run.marks().bases.records()}
    assert [(finding["kind"], finding["base"]) for finding in findings(run.marks())] == [
        ("FOREIGN", str(place))
    ]
    assert candidates(run) == []


def test_the_difference_does_not_depend_on_the_chunk_size(lake):
    for name in ("a", "b"):
        lake.create(name)
        lake.on().drop_table(f"db.{name}")
        lake.create(name)
    settings = lake.settings("1")
    run = lake.planned(settings)
    whole = candidates(run)
    plan(run, settings, {}, silent, paths_at_once=3)
    assert sorted(candidates(run)) == sorted(whole)


def test_a_second_mark_finds_files_that_have_become_live(lake):
    table = lake.create("t")
    old = lake.repository.reference("main").hash
    table.append(ROWS)
    run = lake.planned(lake.settings("1"))
    revived = set(candidates(run))
    assert revived
    lake.repository.create_reference("BRANCH", "revived", old)
    again = run.marks(again=True)
    mark(lake.repository, run.info.settings, again, {}, silent)
    assert revived & {record["path"] for record in again.live.records()}


def test_results_of_an_interrupted_second_mark_are_discarded(lake):
    for name in ("t", "u"):
        table = lake.create(name)
        old = lake.repository.reference("main").hash
        table.append(ROWS)
    run = lake.planned(lake.settings("1"))
    revived = set(candidates(run))
    again = run.marks(again=True)

    def interrupted(what: str, done: int, total: int | None) -> None:
        if (
            what == "live files"
            and again.live.parts.exists()
            and any(again.live.parts.glob("*.json"))
        ):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mark(lake.repository, run.info.settings, again, {}, interrupted, states_per_piece=1)
    lake.repository.create_reference("BRANCH", "revived", old)
    lake.applied(run)
    assert revived & {record["path"] for record in again.live.records()}
    assert all(
        Path(path).exists()
        for path in revived & {record["path"] for record in again.live.records()}
    )


def test_results_of_an_earlier_mark_that_cannot_be_removed_stop_the_run(lake):
    lake.create("t").append(ROWS)
    run = lake.planned(lake.settings("1"))
    before = lake.files()
    # The removal of a folder fails if it is a file.
    run.marks(again=True).live.parts.write_text("")
    with pytest.raises(
        StoreUnavailable, match="live-again-parts: the results of an earlier mark cannot be removed"
    ):
        lake.applied(run)
    assert (lake.files(), run.info.state.value) == (before, "FAILED")
