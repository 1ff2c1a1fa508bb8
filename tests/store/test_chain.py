"""Rows of references, settings and the reflog that are missing, repeated or old are found."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from nessie_cli.errors import DamagedObject
from nessie_cli.store.backup import load_backup
from nessie_cli.store.records import Write
from nessie_cli.store.rows import with_check
from nessie_cli.store.sqlite.store import open_sqlite
from tests.store.raw import raw
from tests.store.samples import a_move, a_write, commit, create, write


@pytest.fixture
def chained(filled: str) -> str:
    """A store with two branches and a deleted one, each with entries."""
    with closing(open_sqlite(filled)) as store:
        write(store, create("dev", "1"))
        write(store, commit("main", "1", "2"))
        write(store, commit("dev", "1", "3"))
        write(store, create("gone", "1"))
        write(store, a_write(moves=[a_move("gone", "1", None)]))
        write(store, commit("main", "2", "4"))
        write(store, a_setting("a", "1"))
        write(store, a_setting("a", "2"))
        write(store, a_setting("b", "1"))
        write(store, a_setting("b", None))
        write(store, a_write(settings={".fact": "1"}))
        assert list(store.verify_file()) == []
    return filled


def a_setting(name: str, value: str | None) -> Write:
    entry = a_move(f"setting:{name}", None, None, kind="SETTING", message=f"to {value}")
    return a_write(moves=[entry], settings={name: value})


def problems(path: str) -> str:
    with closing(open_sqlite(path)) as store:
        return "\n".join(store.verify_file())


def test_each_missing_entry_is_found(chained: str) -> None:
    with raw(chained) as connection:
        rows = connection.execute("SELECT * FROM reflog").fetchall()
        for row in rows:
            connection.execute("DELETE FROM reflog WHERE number = ?", row[:1])
            assert repr(row[1].removeprefix("setting:")) in problems(chained), row
            connection.execute(f"INSERT INTO reflog VALUES ({', '.join('?' * len(row))})", row)
    assert problems(chained) == ""


def test_an_old_row_of_a_reference_is_found(chained: str) -> None:
    with raw(chained) as connection:
        [old] = connection.execute("SELECT * FROM refs WHERE name = 'main'").fetchall()
        with closing(open_sqlite(chained)) as store:
            write(store, commit("main", "4", "5"))
        connection.execute("DELETE FROM refs WHERE name = 'main'")
        connection.execute(f"INSERT INTO refs VALUES ({', '.join('?' * len(old))})", old)
    assert "reference 'main' does not belong to the newest entry" in problems(chained)


@pytest.mark.parametrize("name", ["main", "dev"])
def test_a_missing_reference_is_found(chained: str, name: str) -> None:
    with raw(chained) as connection:
        connection.execute("DELETE FROM refs WHERE name = ?", (name,))
    assert problems(chained).endswith(
        f"reference {name!r} is missing, but its reflog does not end with a deletion"
    )


def test_a_deleted_reference_that_is_back_is_found(chained: str) -> None:
    with raw(chained) as connection:
        [(digest, target)] = connection.execute(
            "SELECT digest, before FROM reflog WHERE name = 'gone' AND after IS NULL"
        )
        connection.execute(
            "INSERT INTO refs VALUES (?, ?, ?, ?, ?)",
            with_check("refs", "gone", "BRANCH", target, digest),
        )
    assert "reference 'gone' exists, but the newest entry of its reflog deleted it" in problems(
        chained
    )


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_missing_or_old_row_of_a_setting_is_found(chained: str, name: str) -> None:
    with raw(chained) as connection:
        [old] = connection.execute("SELECT * FROM settings WHERE name = ?", (name,)).fetchall()
        connection.execute("DELETE FROM settings WHERE name = ?", (name,))
        assert f"setting {name!r} is missing" in problems(chained)
        connection.execute("INSERT INTO settings VALUES (?, ?, ?, ?, ?)", old)
        with closing(open_sqlite(chained)) as store:
            write(store, a_setting(name, "3"))
            assert list(store.verify_file()) == []
        connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?, ?)", old)
        assert f"setting {name!r} does not belong to the newest entry" in problems(chained)


def test_a_setting_without_an_entry_keeps_its_chain(chained: str) -> None:
    with closing(open_sqlite(chained)) as store:
        write(store, a_write(settings={"a": "9", ".other": "1"}))
        assert list(store.verify_file()) == []


def test_a_missing_setting_without_an_entry_is_found(chained: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.sqlite")
    load_backup(chained, copy)
    for path in (chained, copy):
        with raw(path) as connection:
            connection.execute("DELETE FROM settings WHERE name = '.fact'")
        assert "setting '.fact' is missing" in problems(path)


def test_a_damaged_page_that_lists_entries_twice_ends_the_check(chained: str) -> None:
    with closing(open_sqlite(chained)) as store:
        for n in range(200):
            write(store, commit("dev", str(n + 3), str(n + 4)))
    with raw(chained) as connection:
        leaves = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'reflog' AND pagetype = 'leaf'"
        ).fetchall()
    first, second = (4096 * (number - 1) for (number,) in leaves[1:3])
    whole = bytearray(Path(chained).read_bytes())
    whole[second : second + 4096] = whole[first : first + 4096]
    Path(chained).write_bytes(whole)
    with (
        closing(open_sqlite(chained)) as store,
        pytest.raises(DamagedObject, match=r"table reflog, row [0-9]+: out of order"),
    ):
        list(store.verify_file())


def test_the_check_reads_one_state_and_does_not_stop_writers(chained: str) -> None:
    with closing(open_sqlite(chained)) as store, closing(open_sqlite(chained)) as other:
        found = store.dump()
        with found as dump:
            write(other, commit("main", "4", "5"))
            assert list(dump.problems()) == []
        with raw(chained) as connection:
            connection.execute("BEGIN IMMEDIATE")
            assert list(store.verify_file()) == []


def test_a_repeated_entry_is_found(chained: str) -> None:
    with raw(chained) as connection:
        connection.execute(
            "INSERT INTO reflog SELECT 99, name, kind, before, after, time, who, operation,"
            " message, request_id, previous, digest FROM reflog WHERE number = 2"
        )
    with (
        closing(open_sqlite(chained)) as store,
        pytest.raises(DamagedObject, match="table reflog, row 99: its checksum is wrong"),
    ):
        store.reflog()


def test_a_recreated_reference_continues_its_chain(chained: str) -> None:
    with closing(open_sqlite(chained)) as store:
        write(store, create("gone", "1"))
        assert list(store.verify_file()) == []
    with raw(chained) as connection:
        connection.execute("DELETE FROM reflog WHERE name = 'gone' AND after IS NULL")
    assert "reference 'gone': an entry is missing" in problems(chained)


def test_expired_entries_leave_an_anchor(chained: str) -> None:
    with closing(open_sqlite(chained)) as store:
        with store.maintenance() as maintenance:
            expired = maintenance.expire(2**62, 2**62, maintenance.last_move())
        assert expired.moves > 3
        assert list(store.verify_file()) == []
        write(store, commit("dev", "3", "6"))
        write(store, create("gone", "1"))
        assert list(store.verify_file()) == []
    with raw(chained) as connection:
        connection.execute("DELETE FROM anchors WHERE name = 'dev'")
    assert "reference 'dev'" in problems(chained)


def test_nothing_is_left_of_a_deleted_reference_whose_entries_expired(chained: str) -> None:
    def anchors() -> set[str]:
        with raw(chained) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM anchors")}

    with closing(open_sqlite(chained)) as store:
        for _ in range(2):
            with store.maintenance() as maintenance:
                maintenance.expire(2**62, 2**62, maintenance.last_move())
            assert store.reflog("gone") == []
            assert anchors() >= {"main", "dev", "setting:a"}
            assert "gone" not in anchors()
            write(store, create("gone", "1"))
            assert list(store.verify_file()) == []
            write(store, a_write(moves=[a_move("gone", "1", None)]))
            write(store, commit("main", "4", "4"))
            assert list(store.verify_file()) == []


@pytest.mark.parametrize("table", ["refs", "settings"])
def test_a_missing_row_is_found_after_its_entries_expired(chained: str, table: str) -> None:
    with closing(open_sqlite(chained)) as store, store.maintenance() as maintenance:
        maintenance.expire(2**62, 2**62, maintenance.last_move())
    with raw(chained) as connection:
        connection.execute(f"DELETE FROM {table} WHERE name IN ('dev', 'a')")
    assert "is missing, but its reflog does not end with a deletion" in problems(chained)


def test_a_loaded_reference_without_entries_has_an_anchor(chained: str, tmp_path: Path) -> None:
    with closing(open_sqlite(chained)) as store, store.maintenance() as maintenance:
        maintenance.expire(2**62, 2**62, maintenance.last_move())
    copy = str(tmp_path / "copy.sqlite")
    load_backup(chained, copy)
    assert problems(copy) == ""
    with closing(open_sqlite(copy)) as store:
        write(store, commit("dev", "3", "6"))
    assert problems(copy) == ""
    with raw(copy) as connection:
        connection.execute("DELETE FROM refs WHERE name = 'main'")
    assert "reference 'main' is missing" in problems(copy)


def test_an_entry_stays_if_an_older_one_of_its_reference_stays(filled: str) -> None:
    """The clock of one writer is behind."""
    with closing(open_sqlite(filled)) as store:
        for before, after, time in ((None, "1", 100), ("1", "0", 5), ("0", "1", 200)):
            write(store, a_write(moves=[replace(a_move("a", before, after), time=time)]))
        with store.maintenance() as maintenance:
            maintenance.expire(50, 0, maintenance.last_move())
        assert [row.move.time for row in store.reflog("a")] == [200, 5, 100]
        assert list(store.verify_file()) == []
