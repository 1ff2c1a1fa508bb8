"""Changed, missing, repeated and old rows of a store in PostgreSQL are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nessie_cli.errors import DamagedObject
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres
from nessie_cli.store.rows import with_check
from tests.store.postgres_server import shared_server
from tests.store.samples import a_move, a_write, commit, create, write
from tests.store.test_postgres_faults import schema_of


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    """A store with two branches, a deleted one, and settings, each with entries."""
    store = create_postgres(postgres_url)
    write(store, create("main", "0"))
    write(store, commit("main", "0", "1", "r"))
    write(store, create("dev", "1"))
    write(store, create("gone", "1"))
    write(store, a_write(moves=[a_move("gone", "1", None)]))
    write(store, commit("main", "1", "2"))
    entries = [a_move(f"setting:{name}", None, None, kind="SETTING") for name in ("a", "removed")]
    write(store, a_write(moves=entries, settings={"a": "1", "removed": "2"}))
    write(store, a_write(moves=entries[1:], settings={"removed": None}))
    assert list(store.verify_file()) == []
    yield store
    store.close()


@pytest.fixture
def raw(store: PostgresStore, postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with shared_server().connect() as connection:
        connection.execute(f"SET search_path TO {schema_of(postgres_url)}")
        yield connection


DAMAGES = {
    "text": ["{0} || 'x'", "upper({0}) || ' '", "'other'"],
    "bytea": ["{0} || '\\x00'", "set_byte({0}, 3, 255 - get_byte({0}, 3))", "'\\x'"],
    "bigint": ["{0} + 64", "{0} # 1024", "-1 - {0}"],
}
"""Changes of a column, by its type."""

READS: dict[str, list[Callable[[Store], object]]] = {
    "refs": [
        lambda s: s.references(),
        lambda s: s.reference("main"),
        lambda s: s.basis("main", "none"),
        lambda s: s.bases([("main", "none"), ("dev", "")]),
        lambda s: write(s, commit("main", "2", "3")),
        lambda s: write(s, create("main")),
    ],
    "reflog": [
        lambda s: s.reflog(),
        lambda s: s.reflog("main"),
        lambda s: s.newest_moves(["main"]),
    ],
    "settings": [lambda s: s.settings(), lambda s: s.basis("main", "")],
    "requests": [
        lambda s: s.request("r"),
        lambda s: s.basis("main", "r"),
        lambda s: write(s, commit("main", "2", "3", "r")),
    ],
}
ROWS = {
    "refs": "name = 'main'",
    "reflog": "number = (SELECT max(number) FROM reflog WHERE name = 'main')",
    "settings": "name = 'a'",
    "requests": "id = 'r'",
}
KEYS = {"refs": ["name"], "reflog": ["number", "name"], "settings": [], "requests": ["id"]}
"""The columns by which reads find a row: under another key, they find none or another one."""


@pytest.mark.parametrize("table", READS)
def test_a_change_of_any_column_is_found_when_the_row_is_read(
    store: PostgresStore, raw: psycopg.Connection[Any], table: str
) -> None:
    columns = raw.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0",
        (table,),
    ).fetchall()
    assert len(columns) > 3
    for column, type_ in columns:
        for damage in DAMAGES[type_]:
            with raw.transaction():
                raw.execute(f"CREATE TABLE saved AS SELECT * FROM {table}")
                changed = raw.execute(
                    sql.SQL(f"UPDATE {table} SET {{0}} = {damage} WHERE {ROWS[table]}").format(
                        sql.Identifier(column)
                    )  # type: ignore[arg-type]
                ).rowcount
            assert changed == 1
            for read in READS[table] if column not in KEYS[table] else ():
                with pytest.raises(DamagedObject, match=f"table {table}, row .* checksum"):
                    read(store)
            with pytest.raises(DamagedObject, match=f"table {table}, row"):
                read_all(store)
            with raw.transaction():
                raw.execute(f"DELETE FROM {table}")
                raw.execute(f"INSERT INTO {table} SELECT * FROM saved")
                raw.execute("DROP TABLE saved")
            read_all(store)
            assert list(store.verify_file()) == []


def read_all(store: PostgresStore) -> None:
    """Reads all rows, as a backup does."""
    with store.dump() as dump:
        dump.settings()
        for rows in (dump.references(), dump.moves(), dump.requests()):
            list(rows)


def problems(store: PostgresStore) -> str:
    return "\n".join(store.verify_file())


def test_each_missing_entry_is_found(store: PostgresStore, raw: psycopg.Connection[Any]) -> None:
    for (number,) in raw.execute("SELECT number FROM reflog ORDER BY number").fetchall():
        with raw.transaction():
            raw.execute("CREATE TABLE saved AS SELECT * FROM reflog WHERE number = %s", (number,))
            raw.execute("DELETE FROM reflog WHERE number = %s", (number,))
        assert problems(store), number
        with raw.transaction():
            raw.execute("INSERT INTO reflog SELECT * FROM saved; DROP TABLE saved")
    assert problems(store) == ""


def test_an_old_row_of_a_reference_is_found(
    store: PostgresStore, raw: psycopg.Connection[Any]
) -> None:
    raw.execute("CREATE TABLE saved AS SELECT * FROM refs WHERE name = 'main'")
    write(store, commit("main", "2", "3"))
    raw.execute("DELETE FROM refs WHERE name = 'main'; INSERT INTO refs SELECT * FROM saved")
    assert "reference 'main' does not belong to the newest entry" in problems(store)


def test_a_repeated_entry_is_found(store: PostgresStore, raw: psycopg.Connection[Any]) -> None:
    raw.execute(
        "INSERT INTO reflog SELECT 999, name, kind, before, after, time, who, operation,"
        " message, request_id, previous, digest FROM reflog WHERE number = 2"
    )
    with pytest.raises(DamagedObject, match="table reflog, row 999: its checksum is wrong"):
        store.reflog()


def test_a_recreated_reference_continues_its_chain(
    store: PostgresStore, raw: psycopg.Connection[Any]
) -> None:
    write(store, create("gone", "1"))
    assert problems(store) == ""
    raw.execute("DELETE FROM reflog WHERE name = 'gone' AND after IS NULL")
    assert "reference 'gone': an entry is missing" in problems(store)


def test_expired_entries_leave_an_anchor(
    store: PostgresStore, raw: psycopg.Connection[Any]
) -> None:
    with store.maintenance() as maintenance:
        expired = maintenance.expire(2**62, 2**62, maintenance.last_move())
    assert expired.moves > 3
    assert raw.execute("SELECT count(*) FROM attempts").fetchall() == [(0,)]
    assert problems(store) == ""
    write(store, commit("dev", "1", "6"))
    write(store, create("gone", "1"))
    assert problems(store) == ""
    raw.execute("UPDATE anchors SET digest = digest || '\\x00' WHERE name = 'main'")
    assert "table anchors, row 'main': its checksum is wrong" in problems(store)
    raw.execute("DELETE FROM anchors WHERE name = 'dev'")
    assert "reference 'dev'" in problems(store)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [("refs", "kind", "SETTING"), ("requests", "time", -1), ("requests", "time", 2**62)],
)
def test_invalid_values_with_a_right_checksum_are_found(
    store: PostgresStore, raw: psycopg.Connection[Any], table: str, column: str, value: Any
) -> None:
    with raw.cursor() as cursor:
        row = cursor.execute(f"SELECT * FROM {table} WHERE {ROWS[table]}").fetchone()
        assert row is not None
        names = [name.name for name in cursor.description or ()]
    fields = {**dict(zip(names, row, strict=True)), column: value}
    *_, check_sum = with_check(table, *list(fields.values())[:-1])
    raw.execute(
        f"UPDATE {table} SET {column} = %s, check_sum = %s WHERE {ROWS[table]}", (value, check_sum)
    )
    with pytest.raises(DamagedObject, match=f"table {table}, row .* is not valid there"):
        read_all(store)
