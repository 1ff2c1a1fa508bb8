"""`nessie store backup` and `nessie store load`."""

from pathlib import Path

import pytest

from nessie_cli.model import ReferenceType
from nessie_cli.model.runs import RunStage
from nessie_cli.repository.opening import create
from nessie_cli.runs.lifecycle import RunPlan, begin
from tests.store.postgres_server import new_url
from tests.store.raw import raw


def test_a_backup_is_a_store(nessie, catalog) -> None:
    ran = nessie("store", "backup", "lake.backup")
    assert (ran.code, len(ran.lines), ran.err) == (0, 1, "")
    assert "lake.backup" in ran.out
    assert nessie("--store", "lake.backup", "log", "--json").json == nessie("log", "--json").json
    assert nessie("--store", "lake.backup", "fsck").code == 0
    catalog.create("main", "db.later")
    assert nessie("--store", "lake.backup", "log").lines != nessie("log").lines


DAMAGES = {
    **{
        f"missing {name}": (
            "DELETE FROM objects WHERE number ="
            f" (SELECT max(number) FROM objects WHERE kind = {kind})"
        )
        for kind, name in ((1, "value"), (2, "node"), (3, "commit"))
    },
    "missing commit that only the reflog needs": (
        "DELETE FROM objects WHERE id = (SELECT before FROM reflog WHERE name = 'gone'"
        " AND after IS NULL)"
    ),
    "damaged object": "UPDATE objects SET packed = CAST(packed || x'00' AS BLOB) WHERE number = 1",
    "object of no kind": "UPDATE objects SET packed = 'text' WHERE number = 1",
    "missing branch": "DELETE FROM refs WHERE name = 'main'",
    "damaged branch": "UPDATE refs SET target = x'00' WHERE name = 'main'",
    "renamed branch": "UPDATE refs SET name = 'other' WHERE name = 'main'",
    "repeated entry": (
        "INSERT INTO reflog SELECT 99, name, kind, before, after, time, who, operation, message,"
        " request_id, previous, digest FROM reflog WHERE number = 3"
    ),
    "missing entry": "DELETE FROM reflog WHERE number = 3",
    "missing newest entry": "DELETE FROM reflog WHERE number = (SELECT max(number) FROM reflog)",
    "damaged entry": "UPDATE reflog SET message = 'x' WHERE number = 3",
    "damaged request": "UPDATE requests SET caller = 'x'",
    "damaged setting": "UPDATE settings SET value = 'x' WHERE name = 'reflog-expiry'",
    "missing setting": "DELETE FROM settings WHERE name = 'reflog-expiry'",
    "missing property": "DELETE FROM settings WHERE name = '.default-branch'",
    "index entry of the wrong type": (
        "INSERT INTO object_index VALUES ('text', 1), (x'00', 'text')"
    ),
    "damaged schema": "DROP INDEX refs_by_kind",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_neither_backed_up_nor_loaded(
    nessie, catalog, tmp_path: Path, damage: str
) -> None:
    """Nothing is left behind: no file, and nothing in a store that `init` made."""
    # The clock of the catalog is behind that of the command.
    assert nessie("config", "set", "reflog-expiry", "3650d", "--repository").code == 0
    head = catalog.repository.reference("main").hash
    catalog.repository.create_reference(
        ReferenceType.TAG, "v2", head, request_id="chosen by a client"
    )
    catalog.repository.create_reference(ReferenceType.BRANCH, "gone", head)
    former = catalog.create("gone", "db.gone")
    catalog.repository.delete_reference("gone", expected_hash=former)
    assert nessie("store", "backup", "lake.backup").code == 0
    (target := tmp_path / "target").mkdir()
    create(f"{target}/store.sqlite").close()
    before = files(tmp_path)
    for file in (tmp_path / ".nessie" / "store.sqlite", tmp_path / "lake.backup"):
        with raw(file) as connection:
            connection.execute(DAMAGES[damage]).fetchall()
    for arguments in (
        ("store", "backup", "new.backup"),
        ("--store", "new.sqlite", "store", "load", "lake.backup"),
        ("--store", "target/store.sqlite", "store", "load", "lake.backup"),
    ):
        ran = nessie(*arguments, "--json")
        assert (ran.code, ran.error["errorCode"]) == (7, "DAMAGED_OBJECT"), ran.out
    assert files(tmp_path) == before
    with raw(target / "store.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM objects").fetchall() == [(0,)]
    assert nessie("--store", "target/store.sqlite", "fsck").code == 0


def files(folder: Path) -> list[str]:
    """Returns the files, without those that open stores have."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not path.name.endswith(("-wal", "-shm"))
    )


def test_the_document_counts_what_was_copied(nessie, catalog, tmp_path: Path) -> None:
    found = nessie("store", "backup", "lake.backup", "--json").json
    assert found["file"] == str(tmp_path / "lake.backup")
    assert found["references"] == 2
    assert found["objects"] > 5
    loaded = nessie("--store", "new.sqlite", "store", "load", "lake.backup", "--json").json
    assert loaded == found | {"store": "new.sqlite"}


def test_an_existing_file_is_refused(nessie, catalog) -> None:
    Path("lake.backup").write_text("mine")
    ran = nessie("store", "backup", "lake.backup", "--json")
    assert (ran.code, ran.error["errorCode"]) == (5, "FILE_ALREADY_EXISTS")
    assert Path("lake.backup").read_text() == "mine"


@pytest.mark.parametrize("command", ["backup", "load"])
def test_a_server_is_refused(nessie, catalog, command: str) -> None:
    nessie("store", "backup", "lake.backup")
    ran = nessie("--store", "http://127.0.0.1:1/api/v2", "store", command, "lake.backup")
    assert ran.code == 2
    assert "server" in ran.err


def test_a_store_in_use_is_not_loaded_into(nessie, catalog) -> None:
    nessie("store", "backup", "lake.backup")
    before = nessie("reflog", "--json").json
    ran = nessie("store", "load", "lake.backup", "--json")
    assert (ran.code, ran.error["errorCode"]) == (5, "STORE_NOT_EMPTY")
    assert nessie("reflog", "--json").json == before


def test_a_lost_store_is_restored(nessie, catalog, tmp_path: Path) -> None:
    nessie("store", "backup", "lake.backup")
    before = nessie("log", "--json").json
    catalog.repository.close()
    for file in (tmp_path / ".nessie").glob("store.sqlite*"):
        file.unlink()
    assert nessie("log").code == 4
    assert nessie("store", "load", "lake.backup").code == 0
    assert nessie("log", "--json").json == before


def test_a_missing_or_invalid_backup(nessie, catalog) -> None:
    assert nessie("--store", "new.sqlite", "store", "load", "nothing").code == 4
    Path("text").write_text("This is no database at all. " * 100)
    assert nessie("--store", "new.sqlite", "store", "load", "text").code == 7
    assert not Path("new.sqlite").exists()


def test_from_sqlite_to_postgres_and_back(nessie, catalog) -> None:
    before = [
        nessie(*words, "--json").json for words in (("log", "--all"), ("tag",), ("content", "list"))
    ]
    with new_url() as url:
        assert nessie("store", "backup", "there").code == 0
        assert nessie("--store", url, "store", "load", "there").code == 0
        assert nessie("--store", url, "store", "backup", "back").code == 0
        for store in (url, "back"):
            assert nessie("--store", store, "fsck").code == 0
            assert [
                nessie("--store", store, *words, "--json").json
                for words in (("log", "--all"), ("tag",), ("content", "list"))
            ] == before


def test_after_a_load_a_missing_current_reference_is_mentioned(nessie, catalog, tmp_path) -> None:
    nessie("store", "backup", str(tmp_path / "lake.backup"))
    folder = tmp_path / "other"
    folder.mkdir()
    assert nessie("-C", str(folder), "init", "--default-branch", "trunk").code == 0
    ran = nessie("-C", str(folder), "store", "load", str(tmp_path / "lake.backup"))
    ran.expect(0, "switch main` sets another one")


def test_a_backup_has_the_runs(nessie, catalog) -> None:
    """The guard and the expiry of branches work in the copy, and no run has a process there."""
    failed = begin(catalog.repository, RunPlan("main", catalog.head("main")), "etl")
    catalog.update(failed.branch, "db.orders", 7)
    failed.fail(RunStage.COMMAND, "it has failed", exit_code=1, head=failed.head())
    checked = begin(catalog.repository, RunPlan("main", catalog.head("main")), "etl")
    catalog.update(checked.branch, "db.orders", 8)
    checked.change(stage=RunStage.CHECK, head=checked.head())
    assert nessie("store", "backup", "lake.backup").code == 0
    copy = ("--store", "lake.backup")
    runs = nessie(*copy, "run", "--list", "--json").json["runs"]
    assert sorted((run["state"], run["stage"]) for run in runs) == [
        ("failed", "check"),
        ("failed", "command"),
    ]
    assert "copied" in nessie(*copy, "run", "--show", checked.run.id).out
    for run in (failed, checked):
        assert nessie(*copy, "merge", run.branch, "--into", "main").code == 6
    assert nessie(*copy, "run", "--resume", checked.run.id).code == 0
    assert nessie("run", "--show", checked.run.id, "--json").json["state"] == "running"
