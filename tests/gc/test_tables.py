"""A run over real tables: garbage is deleted, tables that are or become live are kept."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nessie_cli.gc import phases
from nessie_cli.gc.apply import apply, approve
from nessie_cli.gc.mark import mark
from nessie_cli.gc.marker import RepositoryMarker
from nessie_cli.gc.plan import plan
from nessie_cli.gc.run import MarkDatasets, Run, Runs, RunSettings, RunState
from nessie_cli.model import ReferenceType
from tests.gc.lakes import later
from tests.iceberg.lake import ROWS, Lake, lake_at, new_store, sorted_rows


def unheard(_what: str, _done: int, _total: int | None) -> None:
    """Ignores progress."""


def now() -> datetime:
    return datetime.now(UTC)


class Collector:
    """The steps of a run on a lake, by the local engine."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        when = now()
        settings = RunSettings(
            store=lake.uri,
            reference_time=later(),
            default_cutoff="1",
            warehouse=(str(lake.warehouse),),
        )
        self.run: Run = Runs(lake.folder / "runs").new(settings, when)
        self.settings = settings

    def mark(self, marks: MarkDatasets) -> object:
        return mark(self.lake.repository, self.settings, marks, {}, unheard)

    def plan_and_approve(self) -> None:
        with self.run.changing():
            phases.mark(self.run, self.mark, now)
            phases.plan(
                self.run, lambda: plan(self.run, self.settings, {}, unheard), self.settings, now
            )
            approve(self.run, "Ann", now())

    def apply(self) -> dict[str, int]:
        with self.run.changing():
            marker = RepositoryMarker(self.lake.repository, self.settings, {}, unheard)
            return apply(self.run, marker, {}, now, lambda _done, _total: None).counts


def files(lake: Lake) -> set[Path]:
    return {path for path in lake.warehouse.rglob("*") if path.is_file()}


@pytest.fixture
def lake(tmp_path: Path):
    """`db.gone` is dropped and all garbage. `db.kept` has old metadata files and orphan files."""
    with lake_at(new_store(tmp_path), tmp_path) as found:
        catalog = found.catalog()
        catalog.create_namespace("db")
        for name in ("db.kept", "db.gone"):
            table = catalog.create_table(name, ROWS.schema)
            table.append(ROWS)
            table.append(ROWS)
        found.before = found.head()
        catalog.drop_table("db.gone")
        left = next(found.warehouse.glob("db/kept*/data")) / "left-behind.parquet"
        left.write_bytes(b"half a file")
        for path in files(found):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        yield found


def test_live_tables_are_readable_and_garbage_is_deleted(lake):
    collector = Collector(lake)
    collector.plan_and_approve()
    counts = collector.apply()
    assert collector.run.info.state is RunState.APPLIED
    assert [
        path for path in files(lake) if "/gone" in str(path) or path.name == "left-behind.parquet"
    ] == []
    assert len(sorted_rows(lake.catalog().load_table("db.kept"))) == 6
    assert counts["deleted"] > 5
    again = Collector(lake)
    again.plan_and_approve()
    assert again.run.info.counts["candidates"] == 0


def test_a_table_restored_between_the_plan_and_the_deletion_is_kept(lake):
    collector = Collector(lake)
    collector.plan_and_approve()
    lake.repository.create_reference(ReferenceType.BRANCH, "rescue", lake.before)
    counts = collector.apply()
    assert counts["becameLive"] > 0
    assert len(sorted_rows(lake.catalog("rescue").load_table("db.gone"))) == 6
    assert not list(lake.warehouse.rglob("left-behind.parquet"))


def test_a_table_that_breaks_between_the_plan_and_the_deletion_protects_only_its_files(
    lake,
):
    collector = Collector(lake)
    collector.plan_and_approve()
    (broken,) = {Path(lake.catalog().load_table("db.kept").metadata_location)}
    broken.write_text("{")
    counts = collector.apply()
    assert counts["protected"] > 0
    assert len(list(lake.warehouse.rglob("left-behind.parquet"))) == 1
    assert not [path for path in files(lake) if "/gone" in str(path)]
