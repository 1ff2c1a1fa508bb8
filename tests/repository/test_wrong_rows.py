"""Rows with a right checksum but wrong fields, and those of another table, are reported."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import apsw
import pytest

from nessie_cli.errors import DamagedObject
from nessie_cli.repository.opening import connect, create
from nessie_cli.store.rows import entry_digest, with_check
from nessie_cli.store.sqlite.schema import TABLES
from tests.repository.test_flips import PAGE, answers, page, problems, with_page
from tests.repository.vocabulary import Catalog, put, table
from tests.store.raw import raw


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with rows in all tables, each in one page."""
    path = tmp_path_factory.mktemp("rows") / "sound.sqlite"
    with create(str(path), who="ann") as repository:
        catalog = Catalog(repository)
        catalog.commit("main", put("t077", table(1)), request_id="request 1")
        catalog.branch("dev")
        repository.put_setting("protect.v1", "no-rewind")
        assert list(repository.check()) == []
    with raw(path) as connection:
        # As if an entry had expired.
        anchor = with_check("anchors", "dev", b"")
        connection.execute("INSERT INTO anchors VALUES (?, ?, ?)", anchor)
    return path


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    path.write_bytes(sound.read_bytes())
    return path


def test_exchanged_tables_are_reported(store: Path) -> None:
    """Each table is read from the pages of each other one."""
    truth, whole = answers(store), store.read_bytes()
    with raw(store) as connection:
        roots = dict(
            connection.execute("SELECT name, rootpage - 1 FROM sqlite_schema WHERE sql <> ''")
        )
    for one, other in combinations(TABLES.keys(), 2):
        first, second = roots[one], roots[other]
        exchanged = with_page(whole, first, page(whole, second))
        exchanged = with_page(exchanged, second, page(whole, first))
        store.write_bytes(exchanged)
        found = answers(store)
        store.write_bytes(exchanged)
        reported = problems(store)
        assert reported or found == truth, (one, other)
    assert len(whole) > PAGE * len(roots)


def checked(table: str) -> Callable[..., tuple[Any, ...]]:
    def row(*fields: Any) -> tuple[Any, ...]:
        return with_check(table, *fields[:-1])

    return row


def chained(*fields: Any) -> tuple[Any, ...]:
    *others, previous, _ = fields
    return (*others, previous, entry_digest(previous, *others))


MAKE: dict[str, Callable[..., tuple[Any, ...]]] = {
    "reflog": chained,
    **{name: checked(name) for name in ("refs", "anchors", "settings", "requests")},
}
WRONG_TYPES: list[Any] = [None, 7, 0.5, "text", b"bytes", b"\xff" * 40]
WRONG_VALUES: dict[tuple[str, str], list[Any]] = {
    ("refs", "kind"): ["", "SETTING", "branch"],
    ("reflog", "kind"): ["", "DETACHED"],
    ("reflog", "time"): [-1, 2**62],
    ("requests", "time"): [-1, 2**62],
}


def with_field(path: Path, table: str, column: str, value: Any) -> bool:
    """Changes a field of all rows; returns whether one has another type now.

    Tables refuse some values.
    """
    types = f"SELECT DISTINCT typeof({column}) FROM {table}"
    with raw(path) as connection:
        before = connection.execute(types).fetchall()
        names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        for row in connection.execute(f"SELECT * FROM {table}").fetchall():
            fields = dict(zip(names, row, strict=True)) | {column: value}
            connection.execute(f"DELETE FROM {table} WHERE {names[0]} = ?", (row[0],))
            insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})"
            try:
                connection.execute(insert, MAKE[table](*fields.values()))
            except (apsw.ConstraintError, apsw.MismatchError):
                connection.execute(insert, row)
        return bool({*connection.execute(types)} - {*before, ("null",)})


@pytest.mark.parametrize("table", MAKE)
def test_fields_of_wrong_types_are_reported(store: Path, table: str) -> None:
    whole = store.read_bytes()
    with raw(store) as connection:
        names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    tried = 0
    for column in names[:-1]:
        for value in WRONG_TYPES:
            store.write_bytes(whole)
            changed = with_field(store, table, column, value)
            answers(store)
            reported = problems(store)
            assert reported or not changed, (column, value)
            tried += changed
    assert tried > 1


@pytest.mark.parametrize(("table", "column"), WRONG_VALUES)
def test_invalid_values_are_reported(store: Path, table: str, column: str) -> None:
    whole = store.read_bytes()
    for value in WRONG_VALUES[table, column]:
        store.write_bytes(whole)
        with_field(store, table, column, value)
        answers(store)
        assert any("is not valid there" in line for line in problems(store)), value


@pytest.mark.parametrize("value", ["", "text", "[1, 2]", '["a"]'])
def test_an_invalid_entry_of_a_setting_is_reported(store: Path, value: str) -> None:
    with_field(store, "reflog", "message", value)
    assert isinstance(answers(store)["reflog"], DamagedObject)
    assert any("in the reflog has no values" in line for line in problems(store))


@pytest.mark.parametrize("value", [b"\x00", b"\x93\x01\x02\x03", b"\xff" * 40])
def test_an_invalid_result_of_a_request_is_reported(store: Path, value: bytes) -> None:
    with_field(store, "requests", "result", value)
    with connect(str(store), who="ann") as repository, pytest.raises(DamagedObject):
        Catalog(repository).commit("main", put("t077", table(1)), request_id="request 1")
    assert any("the result of request" in line for line in problems(store))
