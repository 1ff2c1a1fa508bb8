"""Damaged bytes anywhere in the file of a SQLite store are found."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from nessie_cli.errors import DamagedObject, InvalidInput, NessieError
from nessie_cli.store.records import Done, StoredObject
from nessie_cli.store.rows import LONGEST_OBJECT
from nessie_cli.store.sqlite.session import LONGEST_ROW
from nessie_cli.store.sqlite.store import SQLiteStore, create_sqlite, open_sqlite
from tests.store.samples import COMMIT, NODE, a_write, an_object, commit, id_of, write


def change(path: str, sql: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(sql).fetchall()
    connection.close()


def test_a_flipped_byte_anywhere_in_an_object_is_found(filled: str) -> None:
    """Flips each byte of a small and of a compressed object in the file."""
    for victim in (an_object("1", COMMIT, 300), an_object("node 1", NODE, 3000)):
        connection = apsw.Connection(filled)
        blob: bytes = connection.execute(
            "SELECT packed FROM objects WHERE id = ?", (victim.id,)
        ).get
        store = open_sqlite(filled)
        for position in range(len(blob)):
            damaged = blob[:position] + bytes([blob[position] ^ 0x55]) + blob[position + 1 :]
            connection.execute("UPDATE objects SET packed = ? WHERE id = ?", (damaged, victim.id))
            with pytest.raises(
                DamagedObject, match=rf"object {victim.id.hex()} is damaged: "
            ) as caught:
                store.get([victim.id])
            assert caught.value.object_id == victim.id.hex()
            found = [o for o in store.scan() if not isinstance(o, StoredObject)]
            assert [(o.id, o.kind) for o in found] == [(victim.id, victim.kind)]
        connection.execute("UPDATE objects SET packed = ? WHERE id = ?", (blob, victim.id))
        assert store.get([victim.id]) == {victim.id: victim.data}
        store.close()
        connection.close()


@pytest.mark.parametrize("damage", ["NULL", "7", "'text'", "x''", "x'00'", "x'0900000000'"])
def test_an_invalid_object_is_damaged(filled: str, damage: str) -> None:
    change(
        filled,
        (
            f"PRAGMA ignore_check_constraints = 1; UPDATE OR IGNORE objects SET packed = {damage}"
            f" WHERE kind = {COMMIT}"
        ),
    )
    store = open_sqlite(filled)
    found = [o for o in store.scan() if not isinstance(o, StoredObject)]
    if damage == "NULL":  # the table itself refuses it
        assert found == []
    else:
        assert [o.id for o in found] == [id_of("1")]
        for ids in ([id_of("1")], [id_of("1"), id_of("2"), id_of("3"), id_of("4")]):
            with pytest.raises(DamagedObject):
                store.get(ids)
    store.close()


def test_bytes_that_are_marked_as_text_are_read(filled: str) -> None:
    """SQLite marks text and bytes by one bit of a row's header."""
    change(filled, "UPDATE objects SET packed = CAST(packed AS TEXT)")
    store = open_sqlite(filled)
    objects = {each.id: each.data for each in store.scan() if isinstance(each, StoredObject)}
    assert len(objects) == store.count()
    for id_, data in objects.items():
        assert store.get([id_]) == {id_: data}
    assert store.get(list(objects)) == objects
    store.close()


def test_a_flipped_byte_in_the_file_never_causes_a_wrong_object(
    filled: str, tmp_path: Path
) -> None:
    """Each flip causes one of our errors, a missing object, or the correct answer."""
    whole = Path(filled).read_bytes()
    truth = {
        o.id: o.data
        for o in (
            an_object("value 1"),
            an_object("node 1", NODE, 3000),
            an_object("1", COMMIT, 300),
        )
    }
    used = [n for n, byte in enumerate(whole) if byte]
    seed = Random().randrange(2**32)
    print("seed", seed)
    for position in {*range(100), *Random(seed).sample(used, 700)}:
        damaged = tmp_path / "damaged.sqlite"
        damaged.write_bytes(
            whole[:position]
            + bytes([whole[position] ^ (1 << position % 8)])
            + whole[position + 1 :]
        )
        try:
            store = open_sqlite(str(damaged))
        except NessieError:
            continue
        try:
            for id_, data in store.get(list(truth)).items():
                assert truth[id_] == data, position
            for found in store.scan():
                assert (
                    not isinstance(found, StoredObject)
                    or found.id not in truth
                    or truth[found.id] == found.data
                ), position
            store.references()
            store.reflog()
            store.settings()
            store.request("r")
            store.basis("main", "r")
            store.find_ids(COMMIT, "", 10)
            write(store, commit("main", "1", "2"))
        except NessieError:
            pass
        finally:
            store.close()
        for leftover in ("-wal", "-shm"):
            Path(f"{damaged}{leftover}").unlink(missing_ok=True)


def test_damaged_objects_are_not_read_ahead(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    store = create_sqlite(path)
    objects = [an_object(str(n), COMMIT) for n in range(8)]
    store.put(objects)
    assert store.written_before(objects[7].id, COMMIT, 4) == {o.id: o.data for o in objects[3:]}
    for place, damage in enumerate(
        ["packed = 'text'", "packed = x'00'", "packed = 7", "packed = CAST(x'ff' AS TEXT)"], 2
    ):
        change(path, f"UPDATE objects SET {damage} WHERE number = {place}")
    assert store.written_before(objects[7].id, COMMIT, 8) == {
        o.id: o.data for o in (objects[0], *objects[5:])
    }
    store.close()


def rows_of_every_table(store: SQLiteStore) -> list[Callable[[], object]]:
    """Reads each table; `commit` also reads references and requests."""
    return [
        lambda: store.reference("main"),
        store.references,
        store.reflog,
        lambda: store.reflog("main"),
        store.settings,
        lambda: store.request("r"),
        lambda: store.basis("main", "r"),
        lambda: write(store, commit("main", "2", "3", "r")),
    ]


COLUMNS = {
    "refs": {
        "kind": "'TAG'",
        "target": "x'00'",
        "newest": "x'00'",
        "check_sum": "check_sum + 1",
    },
    "reflog": {
        "kind": "'TAG'",
        "before": "NULL",
        "after": "x'00'",
        "time": "time + 1",
        "who": "'nobody'",
        "operation": "'merge'",
        "message": "'x'",
        "request_id": "'x'",
        "previous": "x'00'",
        "digest": "x'00'",
        "number": "number + 7",
    },
    "settings": {"value": "'2'", "version": "version + 1", "check_sum": "check_sum + 1"},
    "requests": {
        "caller": "'nobody'",
        "digest": "x'00'",
        "result": "'text'",
        "time": "0",
        "check_sum": "check_sum + 1",
    },
}
KEYS = {
    "refs": "name = 'main'",
    "reflog": "number = 3",
    "settings": "name = 'a'",
    "requests": "id = 'r'",
}
READ_BY = {"refs": {0, 1, 6, 7}, "reflog": {2, 3}, "settings": {4, 6}, "requests": {5, 6, 7}}


@pytest.mark.parametrize(
    ("table", "column"),
    [(table, column) for table, columns in COLUMNS.items() for column in columns],
)
def test_a_changed_field_of_any_row_is_found(filled: str, table: str, column: str) -> None:
    store = open_sqlite(filled)
    assert store.commit([a_write(settings={"a": "1"}), commit("main", "1", "2", "r")]) == [
        Done(),
        Done(),
    ]
    store.close()
    change(filled, f"UPDATE {table} SET {column} = {COLUMNS[table][column]} WHERE {KEYS[table]}")
    store = open_sqlite(filled)
    found = set()
    for place, read in enumerate(rows_of_every_table(store)):
        try:
            read()
        except DamagedObject as error:
            assert f"store {filled}: the file is damaged (table {table}, row " in str(error)  # noqa: PT017
            assert "its checksum is wrong); restore it from a backup" in str(error)  # noqa: PT017
            found.add(place)
    assert found == READ_BY[table]
    store.close()


@pytest.mark.parametrize("column", ["id", "kind"])
def test_the_bytes_of_another_object_are_found(filled: str, column: str) -> None:
    """The index of ids, or the kind of an object, is damaged."""
    changed = {"id": "CAST(x'01' || substr(id, 2) AS BLOB)", "kind": "kind + 1"}[column]
    change(filled, f"UPDATE objects SET {column} = {changed} WHERE id = x'{id_of('1').hex()}'")
    store = open_sqlite(filled)
    moved = b"\x01" + id_of("1")[1:] if column == "id" else id_of("1")
    for ids in ([moved], [moved, id_of("a"), id_of("b"), id_of("c")]):
        with pytest.raises(
            DamagedObject, match=rf"object {moved.hex()} is damaged: its checksum is wrong"
        ):
            store.get(ids)
    assert [one.id for one in store.scan() if not isinstance(one, StoredObject)] == [moved]
    store.close()


LARGE_COLUMNS = [
    ("objects", "packed"),
    ("refs", "name"),
    ("refs", "target"),
    ("reflog", "name"),
    ("reflog", "message"),
    ("requests", "result"),
]


@pytest.mark.parametrize(("table", "column"), LARGE_COLUMNS)
def test_a_row_that_no_program_writes_is_not_read(filled: str, table: str, column: str) -> None:
    """A row of 200 MB would take many times that in memory, and all of it was once printed."""
    size, key = 3 * LONGEST_ROW, {"refs": "name", "requests": "id"}.get(table, "number")
    store = open_sqlite(filled)
    assert store.commit([commit("main", "1", "2", "r")]) == [Done()]
    store.close()
    sql = f"UPDATE {table} SET {column} = zeroblob({size}) WHERE {key} = (SELECT max({key}) FROM {table})"
    change(filled, f"PRAGMA ignore_check_constraints = 1; {sql}")
    store = open_sqlite(filled)
    tracemalloc.start()
    reads = [lambda: list(store.scan()), *rows_of_every_table(store)]
    with pytest.raises(DamagedObject) as caught:
        [read() for read in reads]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    store.close()
    assert len(caught.value.message) < 1_000
    assert peak < LONGEST_ROW


@pytest.mark.parametrize("column", ["target", "check_sum"])
def test_a_long_name_is_shortened_in_messages(filled: str, column: str) -> None:
    name = "n" * 100_000
    change(
        filled,
        f"PRAGMA ignore_check_constraints = 1; UPDATE refs SET name = '{name}', {column} = 1",
    )
    store = open_sqlite(filled)
    with pytest.raises(DamagedObject, match=r"table refs, row 'n{100}'\.\.\.: ") as caught:
        store.references()
    assert len(caught.value.message) < 1_000
    assert all(len(finding) < 1_000 for finding in store.verify_file())


def test_an_object_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    store = create_sqlite(str(tmp_path / "store.sqlite"))
    largest = LONGEST_OBJECT
    for size in (largest, LONGEST_OBJECT + 1):
        data = Random(1).randbytes(size)
        large = StoredObject(id_of(str(size)), NODE, data)
        if size == largest:
            store.put([large])
            assert store.get([large.id]) == {large.id: data}
        else:
            with pytest.raises(InvalidInput, match="more than 64 MiB"):
                store.put([large])
    store.close()
