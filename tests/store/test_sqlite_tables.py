"""The schema of a SQLite store is checked when it is opened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nessie_cli.errors import DamagedObject, StoreUnavailable, UnsupportedFormat
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.sqlite.schema import APPLICATION_ID, TABLES
from tests.store.raw import raw
from tests.store.samples import create, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a closed store."""
    path = tmp_path / "store.sqlite"
    store = create_store(str(path))
    write(store, create("main"))
    store.close()
    return path


@pytest.mark.parametrize("name", TABLES)
def test_a_store_without_one_of_its_tables_is_refused(path: Path, name: str) -> None:
    with raw(path) as connection:
        kind = "INDEX" if TABLES[name].startswith("CREATE INDEX") else "TABLE"
        connection.execute(f"DROP {kind} {name}")
    with pytest.raises(DamagedObject, match=f"has no table or index {name}"):
        open_store(str(path))


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON refs BEGIN DELETE FROM objects; END",
            "the trigger t",
        ),
        ("CREATE VIEW v AS SELECT * FROM refs", "the view v"),
        ("DROP TABLE refs; CREATE VIEW refs AS SELECT 1 AS name", "no table or index refs"),
    ],
)
def test_a_store_with_statements_of_others_is_refused(
    path: Path, statement: str, named: str
) -> None:
    with raw(path) as connection:
        connection.execute(statement)
    with pytest.raises(DamagedObject, match=named):
        open_store(str(path))


OTHERS = {
    "CREATE TABLE refs (name TEXT)": "refs",
    "CREATE TABLE refs (name TEXT PRIMARY KEY, kind TEXT, target BLOB, newest BLOB, check_sum INTEGER)": "refs",
    **{
        TABLES[name].replace(old, new): name
        for name, old, new in (
            ("refs", "target BLOB", "target TEXT"),
            ("refs", "kind TEXT NOT NULL, target BLOB NOT NULL", "target BLOB, kind TEXT"),
            ("refs", " WITHOUT ROWID", ""),
            ("reflog", "number INTEGER PRIMARY KEY", "number INTEGER"),
            ("reflog", "digest BLOB NOT NULL", "digest BLOB NOT NULL, more TEXT"),
            ("reflog", "digest BLOB NOT NULL", "digest BLOB NOT NULL CHECK (abs(number) > 0)"),
            ("objects", " UNIQUE", ""),
            ("settings", "newest BLOB NOT NULL,", ""),
            ("requests", "id TEXT NOT NULL PRIMARY KEY", "id INTEGER NOT NULL PRIMARY KEY"),
            ("object_index", "(entry, object)", "(object, entry)"),
        )
    },
    "CREATE INDEX reflog_by_name ON reflog (kind)": "reflog_by_name",
    "CREATE UNIQUE INDEX refs_by_kind ON refs (kind, name)": "refs_by_kind",
    "CREATE INDEX refs_by_kind ON refs (kind, name) WHERE kind = 'TAG'": "refs_by_kind",
    "CREATE VIRTUAL TABLE refs USING fts5 (name)": "refs",
}


@pytest.mark.parametrize("statement", OTHERS)
def test_another_table_of_the_same_name_is_refused(path: Path, statement: str) -> None:
    name = OTHERS[statement]
    type_ = "index" if " INDEX " in statement else "table"
    # The statement differs from ours, or the test would be in vain.
    assert statement != TABLES[name]
    with raw(path) as connection:
        connection.execute(f"DROP {type_} {name}; {statement}").fetchall()
    with pytest.raises(DamagedObject, match=f"its {type_} {name} differs from") as caught:
        open_store(str(path))
    assert str(caught.value).endswith("Hint: restore it from a backup")


def test_a_schema_that_is_no_text_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    assert whole.count(b"CREATE TABLE settings") == 1
    path.write_bytes(whole.replace(b"CREATE TABLE settings", b"CREATE TABLE \xc1ettings"))
    with pytest.raises(DamagedObject, match="the file is damaged"):
        open_store(str(path))


def test_tables_that_others_renamed_and_rewrote_are_accepted(path: Path) -> None:
    """SQLite quotes a name that was changed."""
    with raw(path) as connection:
        connection.execute(
            "ALTER TABLE refs RENAME TO other; ALTER TABLE other RENAME TO refs; VACUUM"
        ).fetchall()
        [(sql,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'refs'")
        assert 'CREATE TABLE "refs"' in sql
    with closing(open_store(str(path))) as store:
        assert [reference.name for reference in store.references()] == ["main"]
        assert list(store.verify_file()) == []


def test_an_additional_table_does_no_harm(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("CREATE TABLE notes (text TEXT); ANALYZE")
    store = open_store(str(path))
    assert [reference.name for reference in store.references()] == ["main"]
    store.close()


def test_a_store_of_a_version_without_sessions_is_accepted(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("DROP TABLE sessions")
    with closing(open_store(str(path))) as store:
        assert list(store.verify_file()) == []


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE sessions (id BLOB)", "CREATE INDEX sessions ON refs (target)"],
)
def test_another_table_of_sessions_is_refused(path: Path, statement: str) -> None:
    with raw(path) as connection:
        connection.execute(f"DROP TABLE sessions; {statement}").fetchall()
    with pytest.raises(DamagedObject, match="sessions differs from"):
        open_store(str(path))


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE refs (name TEXT)")
    with pytest.raises(UnsupportedFormat, match="is not a nessie store"):
        open_store(str(path))


@pytest.mark.parametrize("format_", [0, 1, 2, 3])
def test_a_file_that_only_has_our_identifier_is_refused(tmp_path: Path, format_: int) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {format_}")
        connection.execute("CREATE TABLE refs (name TEXT)")
    with pytest.raises(StoreUnavailable, match=r"store .*other\.sqlite"):
        open_store(str(path))
