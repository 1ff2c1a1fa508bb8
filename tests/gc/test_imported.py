"""Imported tables that another catalog still writes: its files are never collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.gc.foreign import imported_locations
from nessie_cli.gc.removal import RemovalOutcome
from nessie_cli.gc.run import ForeignKind, ForeignLocation, Run, RunState
from nessie_cli.iceberg.locations import normalised
from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.model import ContentKey, Secret
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.repository.changes import PutSettings
from nessie_cli.repository.opening import connect
from tests.gc.collected import Heap, there
from tests.gc.lakes import ROWS, Shore, candidates, needed, shore
from tests.server.guarding import guarded

HIVE = "thrift://hive:9083"
KEY = ContentKey(("db", "t"))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


class Other:
    """A SQL catalog of PyIceberg with tables below the same warehouse."""

    def __init__(self, lake: Shore) -> None:
        self._lake = lake
        self.catalog.create_namespace("db")

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened again, so that nothing is remembered."""
        uri = f"sqlite:///{self._lake.folder}/other.sqlite"
        return load_catalog("other", type="sql", uri=uri, warehouse=str(self._lake.warehouse))

    def create(self, name: str = "db.t") -> Any:
        table = self.catalog.create_table(name, ROWS.schema)
        table.append(ROWS)
        return table

    def rows(self, name: str = "db.t") -> int:
        return len(self.catalog.load_table(name).scan().to_arrow())

    def bring(self, name: str = "db.t") -> None:
        """Imports a table as it is."""
        table = self.catalog.load_table(name)
        key = ContentKey.parse(name)
        row = ImportedTable(
            key.elements, key, table.location(), table.metadata_location, table.metadata_location
        )
        ImportRecords(self._lake.repository).put("other", "other", [row])
        self._lake.on().register_table(name, table.metadata_location)


@pytest.fixture
def other(lake: Shore) -> Other:
    return Other(lake)


def findings_of(run: Run) -> list[dict[str, Any]]:
    return list(run.dataset("plan-findings").records())


def test_the_files_of_a_catalog_that_goes_on_writing_are_kept(lake, other):
    other.create()
    other.bring()
    lake.on().load_table("db.t").append(ROWS)
    table = other.catalog.load_table("db.t")
    table.append(ROWS)
    table.overwrite(ROWS)
    table.append(ROWS)
    lake.create("own")
    lake.on().drop_table("db.own")
    before = lake.files()

    run = lake.planned(lake.settings("1"))
    dead = candidates(run)
    assert dead
    assert all("/db/own/" in path for path in dead)
    (finding,) = findings_of(run)
    assert (finding["kind"], finding["key"]) == ("IMPORTED", "db.t")
    assert finding["location"] == normalised(table.location())
    assert finding["message"].endswith("`nessie import --adopt db.t`")
    assert run.info.counts["imported"] == 1
    assert run.info.settings.foreign == imported_locations(lake.repository)

    applied = lake.applied(run)
    assert applied.outcomes[RemovalOutcome.DELETED] == len(dead)
    assert before - lake.files() == set(dead)
    assert other.rows() == 6
    assert len(lake.on().load_table("db.t").scan().to_arrow()) == 6


def test_an_adopted_table_is_collected_like_any_other(lake, other):
    other.create()
    other.bring()
    lake.on().load_table("db.t").append(ROWS)
    other.catalog.load_table("db.t").append(ROWS)
    before = lake.planned(lake.settings("1"))
    assert candidates(before) == []

    ImportRecords(lake.repository).adopt([KEY])
    applied = lake.applied(before)
    assert applied.outcomes[RemovalOutcome.DELETED] == 0, "an earlier plan stays as it was"

    stay, rows = needed(lake.repository, 1, listed=True)
    run = lake.planned(lake.settings("1"))
    assert findings_of(run) == []
    assert lake.files() - set(candidates(run)) == stay
    assert candidates(run)
    lake.applied(run)
    assert lake.files() == stay
    assert needed(lake.repository, 1, listed=True) == (stay, rows)


def test_an_import_after_the_plan_protects_its_files(lake, other):
    """The table was here before, so its files are candidates of the plan."""
    table = other.create()
    lake.on().register_table("db.t", table.metadata_location)
    lake.on().drop_table("db.t")
    run = lake.planned(lake.settings("1"))
    assert candidates(run)
    other.bring()
    lake.on().drop_table("db.t")
    applied = lake.applied(run)
    assert applied.outcomes[RemovalOutcome.DELETED] == 0
    outcomes = {row["outcome"] for row in run.dataset("kept").records()}
    assert outcomes <= {"PROTECTED", "LIVE"}
    assert "PROTECTED" in outcomes
    assert other.rows() == 3


def test_a_dropped_and_a_renamed_import_stay_protected(lake, other):
    for name in ("db.t", "db.u"):
        other.create(name)
        other.bring(name)
    lake.on().rename_table("db.t", "db.renamed")
    lake.on().drop_table("db.u")
    for name in ("db.t", "db.u"):
        other.catalog.load_table(name).append(ROWS)
    run = lake.planned(lake.settings("1"))
    assert candidates(run) == []
    assert {finding["key"] for finding in findings_of(run)} == {"db.t", "db.u"}
    assert [other.rows(name) for name in ("db.t", "db.u")] == [6, 6]


def test_a_location_outside_of_the_warehouses_is_no_finding(lake, other):
    other.create()
    other.bring()
    run = lake.planned(lake.settings("1", warehouse=(str(lake.folder / "elsewhere"),)))
    assert {finding["kind"] for finding in findings_of(run)} == {"OUTSIDE"}


def test_other_spellings_and_a_location_with_a_question_mark_protect_the_folder(lake):
    rows = [
        ImportedTable((name,), ContentKey((name,)), location, "", "")
        for name, location in (
            ("a", "s3a://lake//db/a/"),
            ("b", f"file://{lake.warehouse}/b"),
            ("c", "s3://lake/db/c?x/y#z"),
            ("d", "gs://lake/db#1/d?x"),
        )
    ]
    ImportRecords(lake.repository).put("hive", HIVE, rows)
    assert {place.key: place.location for place in imported_locations(lake.repository)} == {
        "a": "s3://lake/db/a",
        "b": f"{lake.warehouse.resolve()}/b",
        "c": "s3://lake/db",
        "d": "gs://lake",
    }


def test_a_damaged_record_and_a_relative_location_stop_the_plan(lake):
    records = ImportRecords(lake.repository)
    records.put("hive", HIVE, [ImportedTable(("t",), KEY, "db/t", "", "")])
    with pytest.raises(InvalidInput, match=r"imported table db\.t"):
        imported_locations(lake.repository)
    lake.repository.submit(PutSettings({"import.hive": "{"}))
    with pytest.raises(InvalidInput, match=r"import\.hive"):
        imported_locations(lake.repository)


# -- between the plan and a deletion ---------------------------------------------------------------


def place_of(heap: Heap, name: str = "") -> ForeignLocation:
    return ForeignLocation(str(heap.base / name).rstrip("/"), "db.t", HIVE, ForeignKind.IMPORTED)


@pytest.mark.parametrize(("below", "kept"), [("data", 5), ("", 5), ("data/garbage", 0)])
def test_candidates_that_became_those_of_another_catalog_are_kept(tmp_path, below, kept):
    heap = Heap(tmp_path)
    run = heap.approved()
    heap.others.append(place_of(heap, below))
    applied = heap.apply(run)
    assert (applied.outcomes.get(RemovalOutcome.PROTECTED, 0), run.info.state) == (
        kept,
        RunState.APPLIED,
    )
    assert sum(there(heap.garbage)) == kept


def test_an_import_between_two_batches_protects_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("nessie_cli.gc.apply.FILES_PER_BATCH", 2)
    heap = Heap(tmp_path)
    run = heap.approved()
    calls = 0

    def foreign() -> list[ForeignLocation]:
        nonlocal calls
        calls += 1
        # The first call is that of the mark, the second one that of the first batch.
        return [place_of(heap)] if calls > 2 else []

    monkeypatch.setattr(heap, "foreign", foreign)
    applied = heap.apply(run)
    assert applied.outcomes[RemovalOutcome.DELETED] == 2
    assert applied.outcomes[RemovalOutcome.PROTECTED] == 3


# -- rights ----------------------------------------------------------------------------------------


def test_a_caller_who_may_not_read_the_records_cannot_plan(tmp_path):
    with guarded(tmp_path, "op != 'READ_REPOSITORY_CONFIG'") as server:
        token = server.as_("kim", "keeper").token
        with connect(f"{server.url}/api/v2", access=Access(Bearer(Secret(token)))) as repository:
            assert imported_locations(repository) == (), "there is no setting that is hidden"
            server.repository.put_setting("own", "1")
            with pytest.raises(NotAllowed, match="imported") as refused:
                imported_locations(repository)
            assert "READ_REPOSITORY_CONFIG" in refused.value.hint
            server.rule("role == 'keeper'")
            assert imported_locations(repository) == ()
