"""Rows of references and of the reflog that are missing, repeated or old are found."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec.structs import replace

from nessie_cli.errors import DamagedObject
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
        assert list(store.verify_file()) == []
    return filled


def problems(path: str) -> str:
    with closing(open_sqlite(path)) as store:
        return "\n".join(store.verify_file())


def test_each_missing_entry_is_found(chained: str) -> None:
    with raw(chained) as connection:
        rows = connection.execute("SELECT * FROM reflog").fetchall()
        for row in rows:
            connection.execute("DELETE FROM reflog WHERE number = ?", row[:1])
            last_of_gone = row[1] == "gone" and row[4] is None
            # Nothing refers to the last entry of a deleted reference.
            assert bool(problems(chained)) != last_of_gone, row
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


def test_an_entry_stays_if_an_older_one_of_its_reference_stays(filled: str) -> None:
    """The clock of one writer is behind."""
    with closing(open_sqlite(filled)) as store:
        for before, after, time in ((None, "1", 100), ("1", "0", 5), ("0", "1", 200)):
            write(store, a_write(moves=[replace(a_move("a", before, after), time=time)]))
        with store.maintenance() as maintenance:
            maintenance.expire(50, 0, maintenance.last_move())
        assert [row.move.time for row in store.reflog("a")] == [200, 5, 100]
        assert list(store.verify_file()) == []
