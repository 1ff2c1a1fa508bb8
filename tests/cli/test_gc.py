"""`nessie gc`: what it refuses, and that it keeps what other commands promise to bring back."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from nessie_cli.gc.run import Runs, RunState
from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.model import ContentKey, IcebergTable, ReferenceType
from nessie_cli.repository.opening import connect
from tests.command.in_process import InProcess
from tests.command.outcome import Outcome
from tests.iceberg.lake import ROWS, lake_at
from tests.server.processes import started

LATER = "2999-01-01T00:00:00Z"
"""All moves of the reflog have expired then."""
FORMER_METADATA = 1
"""The metadata file of the table as it was created: what is staged names a newer one."""


@pytest.mark.parametrize(
    "options", [["--catalog", "nowhere"], ["--cutoff", "main"], ["--default-cutoff", "soon"]]
)
def test_a_run_that_cannot_finish_is_not_started(nessie, catalog, options) -> None:
    ran = nessie("gc", "mark", *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran
    assert nessie("gc", "list") == (0, "", "")


def test_an_unknown_value_of_snapshots_gets_the_known_ones(nessie, catalog) -> None:
    ran = nessie("gc", "mark", "--snapshots", "some")
    assert (ran.code, ran.out) == (2, ""), ran
    assert "'some' is not one of 'listed', 'referenced'" in ran.err
    assert nessie("gc", "list") == (0, "", "")


class Place:
    """A workspace whose tables are real; `only` is on the branch `dev`, `kept` on `main`."""

    def __init__(self, nessie: InProcess, folder: Path) -> None:
        self._nessie = nessie
        self.folder = folder
        self.store = folder / ".nessie" / "store.sqlite"
        self.warehouse = folder / "warehouse"
        self.metadata = ""

    def __call__(self, *words: str) -> Outcome:
        ran = self._nessie(*words)
        assert ran.code == 0, ran
        return ran

    def only(self) -> list[Path]:
        """The files of the table that `dev` alone has."""
        return sorted(
            path
            for path in self.warehouse.rglob("*")
            if path.is_file() and "only" in str(path.relative_to(self.warehouse))
        )

    def rows(self, branch: str = "dev") -> int:
        """Those of that table, read through a branch."""
        with lake_at(str(self.store), self.folder) as lake:
            return len(lake.catalog(branch).load_table("db.only").scan().to_arrow())

    def planned(self, *options: str) -> int:
        """How many candidates there are."""
        self("gc", "mark", *options)
        return int(
            self("gc", "plan", "--warehouse", str(self.warehouse), "--grace", "0s", "--json").json[
                "counts"
            ]["candidates"]
        )

    def collected(self, *options: str) -> int:
        """How many files have been deleted."""
        self.planned(*options)
        self("gc", "approve")
        return int(self("gc", "apply", "--json").json["counts"]["deleted"])


@pytest.fixture
def place(nessie, tmp_path) -> Place:
    assert nessie("init").code == 0
    found = Place(nessie, tmp_path)
    with lake_at(str(found.store), tmp_path) as lake:
        catalog = lake.catalog("main")
        catalog.create_namespace("db")
        catalog.create_table("db.kept", ROWS.schema).append(ROWS)
        lake.repository.create_reference(
            ReferenceType.BRANCH, "dev", lake.repository.reference("main").hash
        )
        lake.catalog("dev").create_table("db.only", ROWS.schema).append(ROWS)
        content = lake.repository.content("dev", ContentKey(("db", "only")))
        assert isinstance(content, IcebergTable)
        found.metadata = content.metadata_location
    return found


# -- hints about the next step -------------------------------------------------------------------
def test_a_listing_that_a_run_does_not_have_yet_names_the_next_step(place, nessie) -> None:
    place("gc", "mark")
    for option, why in (
        ("--candidates", "it has not been planned"),
        ("--kept", "it has not been applied"),
    ):
        ran = nessie("gc", "show", option)
        ran.expect(2, why, "nessie gc plan", out="")


def test_an_empty_warehouse_is_refused(place, nessie) -> None:
    place("gc", "mark")
    ran = nessie("gc", "plan", "--warehouse", "")
    assert (ran.code, ran.err) == (2, "nessie: --warehouse: the location is empty\n")


def test_a_plan_counts_the_tables_outside_of_the_warehouse(place) -> None:
    place("gc", "mark")
    assert (
        "2 tables lie outside of the named locations"
        in place("gc", "plan", "--warehouse", "warehosue").err
    )
    shown = place("gc", "show")
    assert len([line for line in shown.lines if line.startswith("outside: db.")]) == 2
    assert "next:" not in shown.err


def test_an_applied_run_says_how_many_candidates_are_deleted(place) -> None:
    place("branch", "-D", "dev")
    deleted = place.collected("--reference-time", LATER)
    assert f"{deleted} of {deleted} candidates deleted" in place("gc", "show").out


def test_show_names_the_settings_of_a_run(place, monkeypatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__S3__REGION", "eu-west-1")
    place("gc", "mark", "--snapshots", "referenced", "--catalog", "lake")
    lines = [line.split() for line in place("gc", "show").lines]
    for setting in ("snapshots referenced", "engine local", "catalog lake"):
        assert setting.split() in lines


# -- files that are kept -------------------------------------------------------------------------
def test_a_deleted_branch_that_undo_restores_has_its_files(place) -> None:
    before = place.only()
    assert "nessie undo dev" in place("branch", "-D", "dev").err
    assert place.collected() == 0
    assert " reflog          6 positions" in place("gc", "show").lines
    place("undo", "dev")
    assert (place.only(), place.rows()) == (before, 3)


def test_a_revision_that_undo_returns_to_has_its_files(place) -> None:
    """The cut-off policy of the branch keeps one commit; the reflog keeps the one before."""
    before = place.only()
    place("branch", "-f", "dev", "main")
    assert place.collected("--default-cutoff", "1") == 0
    place("undo", "dev")
    assert (place.only(), place.rows()) == (before, 3)


def test_files_that_only_expired_moves_need_are_deleted(place) -> None:
    place("branch", "-D", "dev")
    assert place.collected("--reference-time", LATER) > 0
    assert place.only() == []
    assert " reflog          0 positions" in place("gc", "show").lines


def test_the_setting_of_the_repository_says_when_a_move_has_expired(place) -> None:
    place("branch", "-D", "dev")
    place("config", "set", "reflog-expiry", "365000d", "--repository")
    assert place.planned("--reference-time", LATER) == 0
    place("config", "set", "reflog-expiry", "1h", "--repository")
    assert place.planned("--reference-time", LATER) > 0


def test_the_staged_batch_and_the_stashes_of_the_workspace_keep_their_files(place) -> None:
    place("content", "put", "db.only", "--from-metadata", place.metadata)
    place("branch", "-D", "dev")
    later = ("--reference-time", LATER)
    assert place.planned(*later) == FORMER_METADATA
    place("stash")
    assert place.collected(*later) == FORMER_METADATA
    place("stash", "pop")
    assert place.collected(*later) == 0
    place("commit", "-m", "it comes to main")
    assert place.rows("main") == 3


def test_a_stash_that_is_dropped_keeps_nothing(place) -> None:
    place("content", "put", "db.only", "--from-metadata", place.metadata)
    place("branch", "-D", "dev")
    place("stash")
    place("stash", "drop")
    assert place.planned("--reference-time", LATER) > FORMER_METADATA


def test_a_batch_that_is_staged_after_the_plan_keeps_its_files(place) -> None:
    place("branch", "-D", "dev")
    assert place.planned("--reference-time", LATER) > FORMER_METADATA
    place("gc", "approve")
    place("content", "put", "db.only", "--from-metadata", place.metadata)
    assert place("gc", "apply", "--json").json["counts"]["deleted"] == FORMER_METADATA
    place("commit", "-m", "it comes to main")
    assert place.rows("main") == 3


def test_an_invalid_batch_stops_the_mark(place, nessie) -> None:
    (place.folder / ".nessie" / "batch.json").write_text("{")
    ran = nessie("gc", "mark")
    assert ran.code == 2
    assert "batch.json" in ran.err


def test_a_run_that_was_applied_says_so_and_deletes_nothing(place, nessie) -> None:
    place("branch", "-D", "dev")
    assert place.collected("--reference-time", LATER) > 0
    [first, *_] = place.warehouse.rglob("*.parquet")
    assert "has been applied" in place("gc", "apply").err
    ran = nessie("gc", "apply", "--dry-run")
    ran.expect(6, "is APPLIED")
    assert first.exists()


# -- a damaged store -----------------------------------------------------------------------------
def lost_reference(store: Path) -> None:
    change(store, "DELETE FROM refs WHERE name = 'dev'")


def moved_reference(store: Path) -> None:
    change(
        store,
        "DELETE FROM reflog WHERE number = (SELECT max(number) FROM reflog WHERE name = 'dev')",
    )


def lost_reflog(store: Path) -> None:
    change(store, "DELETE FROM reflog")


def damaged_value(store: Path) -> None:
    flip(store, 1)


def damaged_node(store: Path) -> None:
    flip(store, 2)


def lost_commit(store: Path) -> None:
    change(
        store, "DELETE FROM objects WHERE number = (SELECT min(number) FROM objects WHERE kind = 3)"
    )


def change(store: Path, statement: str) -> None:
    with apsw.Connection(str(store)) as file:
        file.execute(statement)
        assert file.changes() > 0, statement
    file.close()


def flip(store: Path, kind: int) -> None:
    """One byte in the middle of the oldest object of a kind."""
    with apsw.Connection(str(store)) as file:
        number, packed = next(
            file.execute(
                "SELECT number, packed FROM objects WHERE kind = ? ORDER BY number LIMIT 1", (kind,)
            )
        )
        middle = len(packed) // 2
        other = packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :]
        file.execute("UPDATE objects SET packed = ? WHERE number = ?", (other, number))
    file.close()


@pytest.mark.parametrize(
    "damage",
    [lost_reference, moved_reference, lost_reflog, damaged_value, damaged_node, lost_commit],
)
def test_plan_and_apply_refuse_a_damaged_store(place, nessie, damage) -> None:
    before = place.only()
    place("tag", "other", "dev")
    assert place.planned("--reference-time", LATER, "--default-cutoff", "1") > 0
    place("gc", "approve")
    damage(place.store)
    runs = Runs(place.folder / ".nessie" / "gc")
    for words in (["plan", "--warehouse", str(place.warehouse)], ["apply"], ["apply", "--dry-run"]):
        ran = nessie("gc", *words)
        assert (ran.code, ran.out) == (7, ""), (words, ran)
        assert "nessie fsck" in ran.err
        assert runs.open().info.state is RunState.APPROVED, "the plan and its approval stay"
    assert place.only() == before


def test_over_a_server_it_says_that_the_store_is_not_verified(place, nessie) -> None:
    place("branch", "-D", "dev")
    with started("--store", str(place.store)) as (_, url):
        remote = ("--store", f"{url}/api/v2")
        place(*remote, "gc", "mark")
        plan = place(
            *remote, "gc", "plan", "--warehouse", str(place.warehouse), "--grace", "0s", "--json"
        )
        assert "clients cannot verify the store of a server" in plan.err
        assert plan.json["counts"]["candidates"] == 0, "the reflog of the server counts"
        place(*remote, "gc", "approve")
        assert "clients cannot verify the store of a server" in place(*remote, "gc", "apply").err


def test_the_location_of_a_table_that_was_never_committed_is_not_searched(place) -> None:
    """It is only staged, and may belong to another catalog."""
    foreign = place.warehouse / "foreign"
    metadata = foreign / "metadata" / "00000-0a1b2c3d-0000-4000-8000-000000000000.metadata.json"
    metadata.parent.mkdir(parents=True)
    text = Path(place.metadata.removeprefix("file://")).read_text()
    location = json.loads(text)["location"]
    metadata.write_text(text.replace(f'"{location}"', f'"{foreign}"'))
    (foreign / "data").mkdir()
    (foreign / "data" / "of-the-other-catalog.parquet").write_bytes(b"rows")
    before = place.planned("--reference-time", LATER)
    place("content", "put", "db.foreign", "--from-metadata", str(metadata))
    assert place.planned("--reference-time", LATER) == before


def test_imported_tables_are_listed_with_the_command_that_adopts_them(place) -> None:
    key = ContentKey(("db", "only"))
    row = ImportedTable(key.elements, key, str(place.only()[0].parent.parent), "x", "x")
    with connect(str(place.store)) as repository:
        ImportRecords(repository).put("hive", "thrift://hive:9083", [row])
        place("branch", "-D", "dev")
        former = place.planned("--default-cutoff", "1", "--reference-time", LATER)
        assert former == 1, "the metadata file of the other table as it was created"
        note = "keeps the files of 1 imported table, because another catalog may write them"
        for words in (["plan", "--grace", "0s"], ["list"]):
            assert note in place("gc", *words).err
        shown = place("gc", "show").out
        assert "imported: db.only is at" in shown
        assert "thrift://hive:9083 may write it" in shown
        assert "`nessie import --adopt db.only`" in shown
        ImportRecords(repository).adopt([key])
    assert place.planned("--default-cutoff", "1", "--reference-time", LATER) == former + len(
        place.only()
    )
    assert place("gc", "list").err == ""
