"""The file of a SQLite store: creation, format, and files that are not stores."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nessie_cli.errors import (
    DamagedObject,
    NessieError,
    StoreNotFound,
    StoreUnavailable,
    UnsupportedFormat,
)
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.records import Done
from nessie_cli.store.sqlite.store import create_sqlite, open_sqlite
from tests.store.samples import commit, create, write


def change(path: str, sql: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(sql).fetchall()
    connection.close()


def names(path: str) -> list[str]:
    return [entry.name for entry in Path(path).parent.iterdir()]


def test_a_closed_store_is_one_file(filled: str) -> None:
    assert names(filled) == ["store.sqlite"]


def test_a_new_store_is_in_wal_mode_and_carries_mark_and_format(path: str) -> None:
    create_sqlite(path).close()
    connection = sqlite3.connect(path)
    header = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "user_version", "page_size")
    }
    assert header == {"journal_mode": "wal", "user_version": STORE_FORMAT, "page_size": 4096}
    assert connection.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"ness"
    connection.close()


def test_a_store_can_be_created_concurrently(path: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(create_sqlite, [path] * 8))
    answers = [write(store, create("main", str(n))) for n, store in enumerate(stores)]
    assert answers.count(Done()) == 1
    for store in stores:
        store.close()
    assert names(path) == ["store.sqlite"]


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"there is no folder .*/nowhere; make it first"):
        create_sqlite(str(tmp_path / "nowhere" / "store.sqlite"))
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="there is no folder"):
        create_sqlite(str(tmp_path / "file" / "store.sqlite"))


def test_creating_does_not_overwrite_another_file(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("text", b"precious words\n" * 100)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnsupportedFormat, match=f"{name}: this file is not a nessie store"):
            create_sqlite(str(tmp_path / name))
        assert (tmp_path / name).read_bytes() == content
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["empty", "text"]


def test_creating_over_a_dangling_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(StoreNotFound, match="link: no such file"):
        create_sqlite(str(tmp_path / "link"))


def test_another_programs_sqlite_file_is_refused_and_not_changed(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE objects (a); INSERT INTO objects VALUES (1)")
    connection.close()
    before = Path(path).read_bytes()
    for make in (open_sqlite, create_sqlite):
        with pytest.raises(
            UnsupportedFormat, match=r"store\.sqlite: this file is not a nessie store"
        ):
            make(path)
    assert Path(path).read_bytes() == before
    assert names(path) == ["store.sqlite"]


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 5000,
        b"SQLite format 3\0" + b"\xff" * 5000,
        b"SQLite format 3\0",
        b"{}",
        os.urandom(9000),
    ],
)
def test_an_invalid_file_is_not_a_store(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    with pytest.raises(UnsupportedFormat, match="this file is not a nessie store"):
        open_sqlite(path)


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    for make in (open_sqlite, create_sqlite):
        with pytest.raises(UnsupportedFormat, match="is a folder; a store is a file"):
            make(str(tmp_path))


def test_a_store_that_loses_a_table_is_damaged(filled: str) -> None:
    store = open_sqlite(filled)
    change(filled, "DROP TABLE reflog")
    with pytest.raises(
        DamagedObject,
        match=r"the file is damaged \(no such table: reflog\); restore it from a backup",
    ):
        store.reflog()
    with pytest.raises(DamagedObject):
        write(store, commit("main", "1", "2"))
    store.close()


def test_a_newer_format_is_refused(filled: str) -> None:
    change(filled, f"PRAGMA user_version = {STORE_FORMAT + 6}")
    before = Path(filled).read_bytes()
    expected = rf"store\.sqlite has format {STORE_FORMAT + 6}; this program supports format {STORE_FORMAT}. Hint: upgrade nessie-cli"
    for make in (open_sqlite, create_sqlite):
        with pytest.raises(UnsupportedFormat, match=expected):
            make(filled)
    assert Path(filled).read_bytes() == before


def test_an_unknown_format_is_refused(filled: str) -> None:
    for number in (-3, 0, 1, 2):
        change(filled, f"PRAGMA user_version = {number}")
        with pytest.raises(
            UnsupportedFormat, match=f"has format {number}, which no program supports any more"
        ):
            open_sqlite(filled)


def test_format_3_is_refused_with_the_command_that_copies_it(filled: str) -> None:
    change(filled, "PRAGMA user_version = 3")
    with pytest.raises(UnsupportedFormat, match=f"nessie store load {filled} "):
        open_sqlite(filled)


def test_a_log_file_of_another_store_is_reported(filled: str, tmp_path: Path) -> None:
    """A backup was copied over a store whose old log file still exists."""
    other = tmp_path / "other.sqlite"
    busy = create_sqlite(str(other))
    for n in range(300):
        write(busy, create(f"branch {n}", str(n)))
        if n == 150:
            # Otherwise the log would have every page of the other store.
            with closing(apsw.Connection(str(other))) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    Path(filled + "-wal").write_bytes(Path(f"{other}-wal").read_bytes())
    busy.close()
    with pytest.raises(NessieError) as caught:  # noqa: PT012 - wherever it is noticed
        store = open_sqlite(filled)
        list(store.scan())
        store.references()
        store.reflog()
    assert f"{filled}-wal may belong to another one" in caught.value.message
