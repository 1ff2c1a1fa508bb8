"""The records of imports, in a store and behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, NotFound, SettingsUnsupported
from nessie_cli.importing.records import ImportedTable, ImportRecord, ImportRecords
from nessie_cli.model import ContentKey
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import PutSettings
from nessie_cli.repository.opening import connect, create
from nessie_cli.repository.remote.plain.server import PlainServer
from tests.repository.servers import Servers

HIVE = "thrift://hive:9083"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/store.sqlite"
    create(url).close()
    return url


@pytest.fixture(params=["store", "server"])
def url(request: pytest.FixtureRequest, store: str) -> Iterator[str]:
    if request.param == "store":
        yield store
        return
    with request.getfixturevalue("servers").serving(store) as address:
        yield address


@pytest.fixture
def repository(url: str) -> Iterator[Repository]:
    with connect(url) as opened:
        yield opened


def foreign_locations(records: ImportRecords) -> dict[str, str]:
    """Returns the locations of tables that are not adopted, each with its source."""
    return {table.location: source for source, table in records.foreign_tables()}


def row(name: str, *, location: str = "", key: str = "", adopted: bool = False) -> ImportedTable:
    location = location or f"s3://lake/{name.replace('.', '/')}"
    metadata = f"{location}/metadata/1.metadata.json"
    names = tuple(name.split("."))
    return ImportedTable(
        names, ContentKey.parse(key or name), location, metadata, metadata, adopted
    )


def test_a_new_repository_has_no_records(repository: Repository) -> None:
    records = ImportRecords(repository)
    assert (records.all(), records.get("hive"), foreign_locations(records)) == ([], None, {})


def test_rows_are_added_and_replaced_by_name(repository: Repository) -> None:
    records = ImportRecords(repository)
    records.put("hive", HIVE, [row("db.a"), row("db.b")])
    records.put("hive", HIVE, [row("db.b", key="x.b"), row("db.c")])
    records.put("glue", "glue", [row("db.a", location="s3://other/a")])
    tables = (row("db.a"), row("db.b", key="x.b"), row("db.c"))
    assert records.get("hive") == ImportRecord("hive", HIVE, tables)
    assert [record.name for record in records.all()] == ["glue", "hive"]
    assert foreign_locations(records) == {
        "s3://other/a": "glue",
        **{f"s3://lake/db/{name}": HIVE for name in "abc"},
    }


def test_a_table_that_was_created_again_elsewhere_keeps_its_earlier_location(
    repository: Repository,
) -> None:
    records = ImportRecords(repository)
    records.put("hive", HIVE, [row("db.a")])
    records.put("hive", HIVE, [row("db.a", location="s3://lake/new")])
    assert list(foreign_locations(records)) == ["s3://lake/db/a", "s3://lake/new"]


def test_adopted_tables_are_no_longer_foreign(repository: Repository) -> None:
    records = ImportRecords(repository)
    records.put("hive", HIVE, [row("db.a"), row("db.b"), row('db."c.d"', location="s3://lake/c")])
    adopted = records.adopt([ContentKey(("db", "a")), ContentKey(("db", "c.d"))])
    assert [table.key.elements[-1] for table in adopted] == ["a", "c.d"]
    assert all(table.adopted for table in adopted)
    assert list(foreign_locations(records)) == ["s3://lake/db/b"]
    records.adopt([ContentKey(("db", "a"))])
    assert list(foreign_locations(records)) == ["s3://lake/db/b"]


def test_adoption_covers_earlier_names_of_a_table(repository: Repository) -> None:
    records = ImportRecords(repository)
    records.put("hive", HIVE, [row("db.a")])
    records.put("hive", HIVE, [row("db.renamed", location="s3://lake/db/a")])
    records.adopt([ContentKey(("db", "renamed"))])
    assert foreign_locations(records) == {}


def test_adoption_of_a_key_without_an_import_changes_nothing(repository: Repository) -> None:
    records = ImportRecords(repository)
    records.put("hive", HIVE, [row("db.a")])
    with pytest.raises(NotFound, match=r"db\.b"):
        records.adopt([ContentKey(("db", "a")), ContentKey(("db", "b"))])
    assert list(foreign_locations(records)) == ["s3://lake/db/a"]


@pytest.mark.parametrize("name", ["", " hive", "a\nb"])
def test_a_name_of_a_source_is_one_line(repository: Repository, name: str) -> None:
    with pytest.raises(InvalidInput):
        ImportRecords(repository).put(name, HIVE, [row("db.a")])


def test_concurrent_imports_and_adoptions_lose_no_row(url: str) -> None:
    def bring(worker: int) -> None:
        with connect(url) as repository:
            records = ImportRecords(repository)
            for number in range(8):
                records.put("hive", HIVE, [row(f"db.t{worker}_{number}")])
                if number % 2:
                    records.adopt([ContentKey(("db", f"t{worker}_{number}"))])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(bring, range(4)))
    with connect(url) as repository:
        record = ImportRecords(repository).get("hive")
    assert record is not None
    assert {table.name[1]: table.adopted for table in record.tables} == {
        f"t{worker}_{number}": bool(number % 2) for worker in range(4) for number in range(8)
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "not a record of an import"),
        ('{"format":1,"source":"x"}', "tables"),
        ('{"format":1,"source":"x","tables":[{"name":["a"],"key":{"elements":[""]}}]}', "element"),
        ('{"format":2,"source":"x","tables":[]}', "format 2"),
    ],
)
def test_a_damaged_record_is_an_error_that_names_it(
    repository: Repository, value: str, message: str
) -> None:
    repository.submit(PutSettings({"import.hive": value}))
    records = ImportRecords(repository)
    for read in (records.all, lambda: records.get("hive"), lambda: foreign_locations(records)):
        with pytest.raises(InvalidInput, match=rf"import\.hive.*{message}"):
            read()
    with pytest.raises(InvalidInput):
        records.put("hive", HIVE, [row("db.a")])
    assert repository.config().settings["import.hive"] == value


def test_a_server_without_settings_has_no_records(
    servers: Servers, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nessie_cli.repository.remote.session.ANNOUNCED", "nothing")
    with servers.serving(store) as address, connect(address) as repository:
        assert isinstance(repository._server, PlainServer)  # type: ignore[attr-defined]
        records = ImportRecords(repository)
        assert (records.all(), foreign_locations(records)) == ([], {})
        with pytest.raises(SettingsUnsupported, match=r"import.hive = 1 table of thrift"):
            records.put("hive", HIVE, [row("db.a")])


def test_300_tables_are_a_short_record(repository: Repository) -> None:
    records = ImportRecords(repository)
    tables = [row(f"db.t{number}") for number in range(300)]
    records.put("hive", HIVE, tables)
    records.adopt([ContentKey(("db", "t7"))])
    record = records.get("hive")
    assert record is not None
    assert record.summary == f"300 tables of {HIVE}, 1 adopted"
    assert len(record.encode()) < 100_000
