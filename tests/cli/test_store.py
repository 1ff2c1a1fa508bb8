"""`nessie store backup` and `nessie store load`."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_store_that_lacks_an_object_is_neither_backed_up_nor_loaded(
    nessie, catalog, tmp_path: Path, kind: int
) -> None:
    assert nessie("store", "backup", "lake.backup").code == 0
    for file in (tmp_path / ".nessie" / "store.sqlite", tmp_path / "lake.backup"):
        with raw(file) as connection:
            connection.execute(
                "DELETE FROM objects WHERE number ="
                " (SELECT max(number) FROM objects WHERE kind = ?)",
                (kind,),
            )
    files = sorted(
        path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))
    )
    backup = nessie("store", "backup", "new.backup", "--json")
    load = nessie("--store", "new.sqlite", "store", "load", "lake.backup", "--json")
    for ran in (backup, load):
        assert (ran.code, ran.error["errorCode"]) == (7, "DAMAGED_OBJECT")
    assert (
        sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm")))
        == files
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
    assert (ran.code, "`nessie switch main` sets another one" in ran.err) == (0, True)
