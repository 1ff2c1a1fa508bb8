"""File permissions of a SQLite store, and errors for users without them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.sqlite.store import SQLiteStore, create_sqlite, open_sqlite
from tests.store.samples import an_object, commit, create, delete, id_of, write


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder with a filled store. Permissions do not bind a superuser, so the test drops these
    rights."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    store = create_sqlite(str(folder / "store.sqlite"))
    write(store, create("main", "0"))
    write(store, commit("main", "0", "1"))
    store.close()
    superuser = os.geteuid() == 0
    folder.chmod(0o777)
    (folder / "store.sqlite").chmod(0o666)
    if superuser:
        os.seteuid(65534)
    yield folder
    if superuser:
        os.seteuid(0)
    folder.chmod(0o777)
    shutil.rmtree(folder)


def as_owner(act: Callable[[], None]) -> None:
    user = os.geteuid()
    if user == 65534:
        os.seteuid(0)
    act()
    if user == 65534:
        os.seteuid(user)


def read_but_not_write(path: Path) -> None:
    store = open_sqlite(str(path))
    assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert len(list(store.scan())) == 3
    assert list(store.verify_file()) == []
    for attempt in (
        lambda: write(store, commit("main", "1", "2")),
        lambda: store.put([an_object("x")]),
        lambda: delete(store, [id_of("x")], 9),
    ):
        with pytest.raises(
            StoreUnavailable,
            match=r"store\.sqlite: it cannot be written; check the permissions of the file and of its folder",
        ):
            attempt()
    assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    store.close()


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555)])
def test_a_read_only_store_is_read(shared: Path, file: int, folder: int) -> None:
    as_owner(lambda: (shared / "store.sqlite").chmod(file))
    as_owner(lambda: shared.chmod(folder))
    read_but_not_write(shared / "store.sqlite")


def test_a_store_that_another_user_has_open_is_read(shared: Path) -> None:
    owner: list[SQLiteStore] = []
    as_owner(lambda: owner.append(open_sqlite(str(shared / "store.sqlite"))))
    as_owner(lambda: write(owner[0], create("dev")) and None)
    as_owner(lambda: [entry.chmod(0o444) for entry in shared.iterdir()] and None)
    as_owner(lambda: shared.chmod(0o555))
    store = open_sqlite(str(shared / "store.sqlite"))
    assert [r.name for r in store.references()] == ["dev", "main"]
    as_owner(lambda: write(owner[0], create("dev2")) and None)
    assert [r.name for r in store.references()] == ["dev", "dev2", "main"]
    store.close()
    as_owner(owner[0].close)


def test_commits_that_are_still_in_the_log_file_are_not_silently_left_out(shared: Path) -> None:
    """A crashed writer leaves them there; without permission to create a lock file, they cannot
    be read."""

    def crash() -> None:
        crashed = shared.parent / f"{shared.name}.copy"
        store = open_sqlite(str(shared / "store.sqlite"))
        write(store, create("dev"))
        for name in ("store.sqlite", "store.sqlite-wal"):
            shutil.copy(shared / name, f"{crashed}{name}")
        store.close()
        for name in ("store.sqlite", "store.sqlite-wal"):
            shutil.move(f"{crashed}{name}", shared / name)
            (shared / name).chmod(0o444)
        shared.chmod(0o555)

    as_owner(crash)
    with pytest.raises(
        StoreUnavailable,
        match=r"its newest commits are in .*store\.sqlite-wal, which cannot be opened; check the permissions",
    ):
        open_sqlite(str(shared / "store.sqlite"))
    as_owner(lambda: shared.chmod(0o777))
    store = open_sqlite(str(shared / "store.sqlite"))
    assert [r.name for r in store.references()] == ["dev", "main"]
    store.close()


def test_an_unreadable_store_is_reported(shared: Path) -> None:
    as_owner(lambda: (shared / "store.sqlite").chmod(0o000))
    with pytest.raises(
        StoreUnavailable, match=r"store\.sqlite(: it)? cannot be (read|opened); check .*permissions"
    ):
        open_sqlite(str(shared / "store.sqlite"))


def test_no_store_is_created_in_a_read_only_folder(shared: Path) -> None:
    as_owner(lambda: shared.chmod(0o555))
    with pytest.raises(
        StoreUnavailable,
        match=r"new\.sqlite cannot be created: files in .* cannot be written; check its permissions",
    ):
        create_sqlite(str(shared / "new.sqlite"))
    assert [entry.name for entry in shared.iterdir()] == ["store.sqlite"]
