"""Migration of a store of format 1 to the current format.

`golden/format_1_repository.sqlite.gz` was written by a released program.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from gzip import decompress
from pathlib import Path
from zlib import crc32

import apsw
import pytest

from nessie_cli.errors import DamagedObject, StoreUnavailable
from nessie_cli.kernel.forms import Kind, object_id
from nessie_cli.store.records import DamagedId, Done, Move, Settings, StoredObject, StoredReference
from nessie_cli.store.sqlite import open_sqlite
from tests.store.samples import a_move, a_write, write

GOLDEN = Path(__file__).parent / "golden" / "format_1_repository.sqlite.gz"
REFLOG = (
    "SELECT name, kind, before, after, time, who, operation, message, request_id FROM reflog"
    " ORDER BY number DESC"
)


@pytest.fixture
def old(path: str) -> str:
    Path(path).write_bytes(decompress(GOLDEN.read_bytes()))
    return path


@pytest.fixture
def raw(old: str) -> apsw.Connection:
    """The old tables, in a copy."""
    copy = apsw.Connection(":memory:")
    source = apsw.Connection(old)
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    return copy


def test_every_table_is_migrated(old: str, raw: apsw.Connection) -> None:
    store = open_sqlite(old)
    ids: dict[int, bytes] = dict(raw.execute("SELECT rowid, id FROM objects"))  # type: ignore[arg-type]
    scanned = list(store.scan())
    assert [one.id for one in scanned] == [ids[number] for number in sorted(ids)]
    for stored in scanned:
        assert isinstance(stored, StoredObject)
        assert object_id(Kind(stored.kind), stored.data) == stored.id
    assert store.get(list(ids.values())) == {
        one.id: one.data for one in scanned if isinstance(one, StoredObject)
    }
    marks = raw.execute("SELECT mark, object FROM marks").fetchall()
    assert sorted(store.scan_index()) == sorted((mark, ids[number]) for mark, number in marks)
    for mark, number in marks:
        assert (number, ids[number]) in store.find_indexed(mark, None, 1000)
    assert store.references() == [
        StoredReference(*row) for row in raw.execute("SELECT * FROM refs ORDER BY name")
    ]
    assert [row.move for row in store.reflog()] == [Move(*row) for row in raw.execute(REFLOG)]
    assert store.settings() == Settings(dict(raw.execute("SELECT name, value FROM settings")), 1)  # type: ignore[arg-type]
    assert len(marks) > 50
    assert len(store.references()) == 3
    store.close()


def test_requests_come_from_the_reflog(old: str, raw: apsw.Connection) -> None:
    store = open_sqlite(old)
    rows = raw.execute(
        "SELECT request_id, who, min(time) FROM reflog WHERE request_id <> '' GROUP BY 1"
    ).fetchall()
    assert len(rows) > 5
    for id_, who, first in rows:
        request = store.request(id_)
        assert request is not None
        assert (request.id, request.caller, request.digest, request.result, request.time) == (
            id_,
            who,
            b"",
            b"",
            first,
        )
    assert store.request("") is None
    store.close()


def test_numbers_continue_after_those_of_the_old_format(old: str, raw: apsw.Connection) -> None:
    highest: int = raw.execute("SELECT max(rowid) FROM objects").get
    moved: int = raw.execute("SELECT max(number) FROM reflog").get
    store = open_sqlite(old)
    new = StoredObject(bytes(32), 1, b"new", (b"e",))
    assert write(store, a_write([new], [a_move("other", None, "1")])) == Done()
    assert store.find_indexed(b"e", None, 1) == [(highest + 1, new.id)]
    assert store.reflog(limit=1)[0].number == moved + 1
    store.close()


def test_a_migrated_store_has_the_tables_of_a_new_one(old: str, tmp_path: Path) -> None:
    from nessie_cli.store.sqlite import create_sqlite

    open_sqlite(old).close()
    create_sqlite(str(tmp_path / "new.sqlite")).close()

    def tables(path: str) -> list[tuple[str, str, tuple[object, ...]]]:
        connection = apsw.Connection(path)
        found = connection.execute("SELECT type, name FROM sqlite_schema ORDER BY name").fetchall()
        columns = {
            name: connection.execute(f"SELECT * FROM pragma_table_xinfo('{name}')").fetchall()
            for _, name in found
        }
        connection.close()
        return [(kind, name, tuple(columns[name])) for kind, name in found]

    assert tables(old) == tables(str(tmp_path / "new.sqlite"))


def test_a_damaged_object_stays_damaged(old: str) -> None:
    connection = apsw.Connection(old)
    number, id_, blob = connection.execute(
        "SELECT rowid, id, data FROM objects WHERE length(data) > 50"
    ).fetchall()[3]
    damaged = blob[:40] + bytes([blob[40] ^ 1]) + blob[41:]
    connection.execute("UPDATE objects SET data = ? WHERE rowid = ?", (damaged, number))
    connection.close()
    store = open_sqlite(old)
    with pytest.raises(DamagedObject, match=rf"object {id_.hex()} is damaged: "):
        store.get([id_])
    assert [one.id for one in store.scan() if isinstance(one, DamagedId)] == [id_]
    store.close()


def test_bytes_under_another_id_were_not_found_by_format_1_but_are_now(old: str) -> None:
    connection = apsw.Connection(old)
    (one, blob), (other, _) = connection.execute(
        "SELECT id, data FROM objects WHERE kind = 1 LIMIT 2"
    ).fetchall()
    assert int.from_bytes(blob[1:5], "big") == crc32(blob[:1] + blob[5:])
    connection.close()
    store = open_sqlite(old)
    connection = apsw.Connection(old)
    connection.execute(
        "UPDATE objects SET packed = (SELECT packed FROM objects WHERE id = ?) WHERE id = ?",
        (one, other),
    )
    connection.close()
    with pytest.raises(DamagedObject):
        store.get([other])
    store.close()


def test_an_old_program_cannot_write_to_a_migrated_file(old: str) -> None:
    """Its objects would have no valid checksum."""
    connection = apsw.Connection(old)
    connection.execute("SELECT * FROM refs").fetchall()
    open_sqlite(old).close()
    with pytest.raises(apsw.SQLError, match="no column named data"):
        connection.execute(
            "INSERT INTO objects (id, kind, written, data) VALUES (x'00', 1, 1, x'00')"
        )
    connection.close()


def test_a_migration_on_a_full_disk_changes_nothing(old: str) -> None:
    def limit(connection: apsw.Connection) -> None:
        used = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {used + 3}").fetchall()

    apsw.connection_hooks.append(limit)
    try:
        with pytest.raises(StoreUnavailable, match="the disk is full, nothing was written"):
            open_sqlite(old)
    finally:
        apsw.connection_hooks.remove(limit)
    connection = apsw.Connection(old)
    assert connection.execute("PRAGMA user_version").get == 1
    assert len(connection.execute("SELECT data FROM objects").fetchall()) == 87
    connection.close()
    store = open_sqlite(old)
    assert len(list(store.scan())) == 87
    store.close()


def test_a_store_can_be_migrated_concurrently(old: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(open_sqlite, [old] * 6))
    for store in stores:
        assert len(list(store.scan())) == 87
        store.close()
