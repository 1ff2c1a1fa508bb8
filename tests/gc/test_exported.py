"""Exported tables, which the other catalog may write: its files are never collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from nessie_cli.exporting.plan import ExportPlace, ExportScope, plan_export
from nessie_cli.exporting.run import run_export
from nessie_cli.exporting.state import ExportRecord
from nessie_cli.exporting.target import open_target
from nessie_cli.gc.foreign import ForeignTables
from nessie_cli.gc.removal import RemovalOutcome
from nessie_cli.gc.run import Run
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised
from nessie_cli.model import CommitMeta
from tests.gc.lakes import ROWS, Shore, candidates, shore
from tests.gc.test_imported import findings_of


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


class Receiver:
    """A SQL catalog of PyIceberg, named `other`, that tables are exported to."""

    def __init__(self, lake: Shore, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lake = lake
        self._settings = {"type": "sql", "uri": f"sqlite:///{lake.folder}/other.sqlite"}
        for name, value in self._settings.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__OTHER__{name.upper()}", value)

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened again, so that nothing is remembered."""
        return load_catalog("other", **self._settings)

    def export(self, scope: ExportScope | None = None) -> None:
        """Exports the tables on main."""
        repository = self._lake.repository
        scope = scope or ExportScope(lambda _: True)
        target = open_target("other", repository)
        place = ExportPlace(target, ExportRecord(repository, "other"), Files({}))
        plan = plan_export(repository, repository.reference("main").hash, place, scope)
        assert not plan.problems
        run_export(plan, place, CommitMeta("export"), allow_gap=True)

    def append(self, name: str = "db.t") -> None:
        self.catalog.load_table(name).append(ROWS)

    def rows(self, name: str = "db.t") -> int:
        return len(self.catalog.load_table(name).scan().to_arrow())


@pytest.fixture
def receiver(lake: Shore, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    return Receiver(lake, monkeypatch)


def release(lake: Shore, name: str = "exported/other") -> None:
    reference = lake.repository.reference(name)
    lake.repository.delete_reference(name, expected_hash=reference.hash)


def collected(lake: Shore) -> Run:
    """Returns a run that is applied."""
    run = lake.planned(lake.settings("1"))
    lake.applied(run)
    return run


def test_the_files_of_a_receiver_that_writes_on_are_kept(lake, receiver):
    table = lake.create("t")
    lake.create("own")
    receiver.export()
    lake.on().drop_table("db.own")
    lake.on().drop_table("db.t")
    receiver.append()
    receiver.append()
    before = lake.files()

    run = collected(lake)
    assert lake.files() == before, "db.own is exported, too"
    assert receiver.rows() == 9
    findings = {finding["key"]: finding for finding in findings_of(run)}
    assert {finding["kind"] for finding in findings.values()} == {"EXPORTED"}
    assert findings["db.t"]["location"] == normalised(table.location())
    assert findings["db.t"]["message"].endswith(
        "other may write it; no file there is collected. Hint: if no table of this repository is"
        " in other any more, `nessie tag -d exported/other`"
    )
    assert (run.info.counts["exported"], run.info.counts["imported"]) == (2, 0)


def test_files_are_collected_after_the_tag_is_deleted(lake, receiver):
    lake.create("t")
    before = lake.files()
    receiver.export()
    receiver.append()
    written = lake.files() - before
    assert written
    assert candidates(lake.planned(lake.settings("1"))) == []
    release(lake)
    run = collected(lake)
    assert findings_of(run) == []
    # So is the metadata file before the append.
    assert len(set(candidates(run)) - written) == 1
    assert written <= set(candidates(run))
    assert lake.files() == before - set(candidates(run))


def test_other_tables_are_collected(lake, receiver):
    lake.create("t")
    receiver.export()
    lake.create("own")
    lake.on().drop_table("db.own")
    receiver.append()
    run = collected(lake)
    assert candidates(run)
    assert all("/db/own/" in path for path in candidates(run))
    assert receiver.rows() == 6


def test_a_pruned_table_is_collected(lake, receiver):
    lake.create("t")
    lake.create("u")
    receiver.export()
    lake.on().drop_table("db.u")
    receiver.export(ExportScope(lambda _: True, prune=True))
    (lake.warehouse / "db" / "u" / "data" / "garbage").write_text("x")
    run = collected(lake)
    assert {finding["key"] for finding in findings_of(run)} == {"db.t"}
    assert candidates(run)
    assert all("/db/u/" in path for path in candidates(run))
    assert "garbage" in {Path(path).name for path in candidates(run)}


def test_folders_of_their_own_for_data_are_kept(lake, receiver):
    data = lake.warehouse / "far" / "data"
    lake.create("t", **{"write.data.path": str(data)})
    receiver.export()
    receiver.append()
    assert list(data.rglob("*.parquet"))
    assert candidates(collected(lake)) == []
    assert receiver.rows() == 6


def test_an_interrupted_export_protects_its_tables(lake, receiver, monkeypatch):
    lake.create("t")
    with monkeypatch.context() as context:
        context.setattr(ExportRecord, "complete", lambda _: None)
        receiver.export()
    receiver.append()
    run = collected(lake)
    assert candidates(run) == []
    (finding,) = findings_of(run)
    assert finding["message"].endswith("`nessie branch -d exporting/other`")
    assert receiver.rows() == 6

    lake.create("u")
    release(lake, "exporting/other")
    receiver.catalog.drop_table("db.t")
    receiver.export()
    lake.on().load_table("db.u").append(ROWS)
    with monkeypatch.context() as context:
        context.setattr(ExportRecord, "complete", lambda _: None)
        receiver.export()
    (_, finding) = findings_of(collected(lake))
    assert finding["message"].endswith(
        "`nessie branch -d exporting/other` and `nessie tag -d exported/other`"
    )


@pytest.mark.parametrize("times", [1, 2])
def test_an_export_after_the_plan_protects_its_files(lake, receiver, monkeypatch, times):
    """The receiver registers the table between the plan and a batch."""
    monkeypatch.setattr("nessie_cli.gc.apply.FILES_PER_BATCH", 2)
    lake.create("t")
    for number in range(4):
        (lake.warehouse / "db" / "t" / "data" / f"garbage-{number}").write_text("x")
    run = lake.planned(lake.settings("1"))
    assert len(candidates(run)) == 4 + 1, "the metadata file before the append is dead, too"
    locations, calls = ForeignTables.locations, 0

    def exporting(self):
        nonlocal calls
        calls += 1
        # The first call is that of the mark, the second one that of the first batch.
        if calls == times:
            receiver.export()
            receiver.append()
        return locations(self)

    monkeypatch.setattr(ForeignTables, "locations", exporting)
    applied = lake.applied(run)
    assert applied.outcomes.get(RemovalOutcome.DELETED, 0) == 0
    assert applied.outcomes[RemovalOutcome.PROTECTED] == len(candidates(run))
    assert receiver.rows() == 6


def test_an_unreadable_exported_table_protects_the_folder_around_its_metadata(lake, receiver):
    table = lake.create("t")
    receiver.export()
    receiver.append()
    Path(table.metadata_location).unlink()
    before = lake.files()
    (place,) = ForeignTables(lake.repository, {}).locations()
    assert place.location == normalised(table.location())
    assert candidates(collected(lake)) == []
    assert lake.files() == before


def test_a_read_again_sees_new_exports_and_deleted_tags(lake, receiver):
    tables = ForeignTables(lake.repository, {})
    assert tables.locations() == ()
    lake.create("t")
    receiver.export()
    assert [place.key for place in tables.locations()] == ["db.t"]
    lake.create("u")
    receiver.export()
    assert [place.key for place in tables.locations()] == ["db.t", "db.u"]
    release(lake)
    assert tables.locations() == ()
