"""Catalogs of PyIceberg as sources: SQL, REST and Glue. There is no server of Hive."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.view.metadata import ViewMetadata

from nessie_cli import create
from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, StoreUnavailable
from nessie_cli.importing.opening import SourceType, open_source
from nessie_cli.importing.source import Listing, Name, SourceContent, SourceKind, SourceNamespace
from nessie_cli.importing.sources.view_files import ViewFiles
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.tokens import add_token
from tests.gc.s3 import KEY, SECRET, Store, s3
from tests.server.iceberg_rest.lake import Lake, lake

ROWS = pa.table({"id": [1, 2]})
NO_VIEWS = "PyIceberg cannot list views in this catalog"


def listed(text: str, *namespaces: Name, **options: Any) -> Listing:
    source = open_source(text, **options)
    try:
        return source.listing(namespaces)
    finally:
        source.close()


def messages(listing: Listing) -> list[str]:
    return [problem.message for problem in listing.problems]


# -- SQL ------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def prod(tmp_path: Path, database: str) -> Iterator[Catalog]:
    """A SQL catalog with nested namespaces and three tables."""
    catalog = load_catalog("prod", type="sql", uri=database, warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("sales", {"owner": "ann"})
    catalog.create_namespace("sales.eu")
    catalog.create_namespace("empty")
    for name in ("sales.orders", "sales.eu.orders", "sales.eu.items"):
        catalog.create_table(name, ROWS.schema).append(ROWS)
    yield catalog
    catalog.close()


@pytest.fixture
def configured(prod: Catalog, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration of PyIceberg with the catalog."""
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", database)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY", "never-to-be-seen")


def current(catalog: Catalog, name: str) -> SourceContent:
    """Returns the content of a table of a catalog."""
    location = catalog.load_table(name).metadata_location
    return SourceContent(tuple(name.split(".")), SourceKind.TABLE, location)


def test_a_sql_catalog_has_tables_and_nested_namespaces(prod: Catalog, database: str) -> None:
    listing = listed(database)
    assert listing.namespaces == [
        SourceNamespace(("empty",)),
        SourceNamespace(("sales",), {"owner": "ann"}),
        SourceNamespace(("sales", "eu")),
    ]
    assert listing.contents == [
        current(prod, name) for name in ("sales.eu.items", "sales.eu.orders", "sales.orders")
    ]
    assert not listing.problems
    assert [entry.message for entry in listing.left_out] == [NO_VIEWS]


@pytest.mark.usefixtures("configured")
def test_a_catalog_is_opened_by_its_name_in_the_configuration(prod: Catalog) -> None:
    source = open_source("prod")
    assert source.label == "prod"
    assert source.properties["s3.secret-access-key"] == "never-to-be-seen"
    assert len(source.listing([]).contents) == 3
    source.close()


def test_only_the_given_namespaces_are_read_with_those_above(prod: Catalog, database: str) -> None:
    listing = listed(database, ("sales", "eu"), ("sale",), ("sales", "eu"))
    assert [namespace.name for namespace in listing.namespaces] == [("sales",), ("sales", "eu")]
    assert [content.name for content in listing.contents] == [
        ("sales", "eu", "items"),
        ("sales", "eu", "orders"),
    ]
    assert [(problem.name, problem.message) for problem in listing.problems] == [
        (("sale",), "no such namespace")
    ]


def test_tables_that_cannot_be_loaded_are_problems_and_the_others_are_listed(
    prod: Catalog, database: str
) -> None:
    missing, damaged = (
        Path(current(prod, name).metadata_location.removeprefix("file://"))
        for name in ("sales.orders", "sales.eu.items")
    )
    missing.unlink()
    damaged.write_text("{")
    listing = listed(database)
    assert [content.name for content in listing.contents] == [("sales", "eu", "orders")]
    assert [problem.name for problem in listing.problems] == [
        ("sales", "eu", "items"),
        ("sales", "orders"),
    ]
    assert all(text.startswith("the catalog cannot load this table") for text in messages(listing))


def test_a_database_with_several_catalogs_needs_the_name(prod: Catalog, database: str) -> None:
    other = load_catalog("dev", type="sql", uri=database, warehouse="file:///nowhere")
    other.create_namespace("a")
    other.close()
    with pytest.raises(InvalidInput, match=r"several catalogs: dev, prod.*--property name=dev"):
        open_source(database)
    assert len(listed(database, properties={"name": "prod"}).contents) == 3
    with pytest.raises(InvalidInput, match="has no catalog qa, but dev, prod"):
        open_source(database, properties={"name": "qa"})


def test_an_import_creates_nothing_at_the_source(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.db"
    with pytest.raises(NotFound, match=r"nowhere\.db: no such database"):
        open_source(f"sqlite:///{nowhere}")
    assert not nowhere.exists()
    sqlite3.connect(nowhere).close()
    nowhere.touch()
    with pytest.raises(InvalidInput, match="is not a catalog of Iceberg"):
        open_source(f"sqlite:///{nowhere}")
    assert not nowhere.read_bytes()


def test_a_store_of_nessie_is_told_from_a_catalog(tmp_path: Path) -> None:
    create(f"sqlite:///{tmp_path}/store.sqlite").close()
    with pytest.raises(InvalidInput, match="a store of nessie itself is a source with --type"):
        open_source(f"sqlite:///{tmp_path}/store.sqlite")
    (tmp_path / "no.db").write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInput, match=r"cannot be read: .*file is not a database"):
        open_source(f"sqlite:///{tmp_path}/no.db")


def test_an_empty_catalog_is_a_problem(tmp_path: Path, database: str) -> None:
    load_catalog("empty", type="sql", uri=database).close()
    listing = listed(database)
    assert messages(listing) == ["has no Iceberg tables or views"]
    assert listing.problems[0].location == database


def test_300_tables_are_loaded_with_progress(prod: Catalog, database: str) -> None:
    location = current(prod, "sales.orders").metadata_location
    for number in range(297):
        prod.register_table(f"empty.t{number}", location)
    seen: list[tuple[int, int | None]] = []
    source = open_source(database)
    listing = source.listing([], lambda done, total: seen.append((done, total)))
    source.close()
    assert len(listing.contents) == 300
    assert (seen[0], seen[-1]) == ((0, 300), (299, 300))


def test_passwords_are_in_no_label_and_no_message() -> None:
    secret = "never-to-be-seen"
    uri = f"postgresql+psycopg2://ann:{secret}@127.0.0.1:1/lake?sslpassword={secret}"
    with pytest.raises((InvalidInput, StoreUnavailable)) as caught:
        open_source(uri)
    assert secret not in str(caught.value)
    assert "postgresql+psycopg2://ann@127.0.0.1:1/lake" in str(caught.value)


# -- REST -----------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Lake]:
    """A server with a warehouse: `db` with a table and two views, one of which was replaced."""
    with lake(tmp_path / "warehouse") as running:
        assert running.main.namespace("db", owner="ann").status == 200
        assert running.main.namespace("db", "below").status == 200
        assert running.main.create("db", "t").status == 200
        for name in ("v", "w"):
            assert running.main.view("db", name).status == 200
        yield running


def replace_view(running: Lake, name: str) -> None:
    update = {"action": "set-properties", "updates": {"comment": "newer"}}
    answer = running.main.post(f"/namespaces/db/views/{name}", {"updates": [update]})
    assert answer.status == 200


def test_a_rest_catalog_has_tables_views_and_namespaces(served: Lake) -> None:
    replace_view(served, "w")
    listing = listed(f"{served.url}/iceberg")
    assert not listing.problems
    assert not listing.left_out
    assert listing.namespaces == [
        SourceNamespace(("db",), {"owner": "ann", "location": f"file://{served.folder}/db"}),
        SourceNamespace(("db", "below"), {"location": f"file://{served.folder}/db/below"}),
    ]
    entries = served.repository.entries("main", content=True)
    assert {content.name: content.metadata_location for content in listing.contents} == {
        entry.key.elements: entry.content.metadata_location  # type: ignore[union-attr]
        for entry in entries
        if entry.type != "NAMESPACE"
    }
    assert [content.kind for content in listing.contents] == ["table", "view", "view"]


def test_the_file_of_a_view_is_the_one_with_its_content(served: Lake) -> None:
    (file,) = (path for path in served.files() if "/v_" in str(path))
    view = ViewMetadata.model_validate_json(file.read_bytes())
    newer = file.with_name("99999-newer.metadata.json")
    newer.write_text(file.read_text().replace("select 1", "select 2"))
    file.with_name("99998-damaged.metadata.json").write_text("{")
    assert ViewFiles({}).location_of(view) == f"{view.location}/metadata/{file.name}"
    file.unlink()
    assert ViewFiles({}).location_of(view) is None


def test_a_view_that_cannot_be_loaded_is_a_problem(served: Lake) -> None:
    for path in served.files():
        if "/v_" in str(path):
            path.rename(path.with_suffix(".moved"))
    listing = listed(f"{served.url}/iceberg")
    assert [content.name for content in listing.contents] == [("db", "t"), ("db", "w")]
    assert [problem.name for problem in listing.problems] == [("db", "v")]


def test_a_missing_namespace_of_a_rest_catalog_is_a_problem(served: Lake) -> None:
    listing = listed(f"{served.url}/iceberg", ("nowhere",))
    assert (listing.contents, messages(listing)) == ([], ["no such namespace"])


OPENING = """
import sys
from nessie_cli.errors import NessieError
from nessie_cli.importing.opening import open_source
try:
    open_source(sys.argv[1]).close()
except NessieError as error:
    print(type(error).__name__, error)
"""


def test_credentials_of_other_catalogs_are_not_sent_to_a_uri(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = add_token(tokens, "ann", [], None, datetime.now(UTC))[0]

    def opened(text: str, **variables: str) -> str:
        # PyIceberg reads the environment when it is imported.
        program = [sys.executable, "-c", OPENING, text]
        named = {f"PYICEBERG_CATALOG__{name}": value for name, value in variables.items()}
        ran = subprocess.run(
            program, env={**os.environ, **named}, capture_output=True, text=True, check=True
        )
        return ran.stdout

    with lake(tmp_path / "lake", gate=open_gate(Security(tokens=tokens))) as server:
        uri = f"{server.url}/iceberg"
        others = {f"{name}__TOKEN": token for name in ("DEFAULT", "SOURCE", "NAMED")}
        refusal = opened(uri, **others)
        assert refusal.startswith(f"NotAllowed {uri} refuses access")
        assert "configure a catalog with its credentials" in refusal
        assert not opened("named", **others, NAMED__URI=uri)
        refusal = opened("named", NAMED__TOKEN="never-to-be-seen", NAMED__URI=uri)
        assert refusal.startswith("NotAllowed named refuses access")
        assert "never-to-be-seen" not in refusal


def test_our_own_catalog_class_is_a_source(
    served: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It refuses options that it does not have.
    for name, value in {
        "PY_CATALOG_IMPL": "nessie_cli.iceberg.catalog.NessieCatalog",
        "URI": f"{served.url}/api/v2",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__OURS__{name}", value)
    listing = listed("ours")
    assert [content.kind for content in listing.contents] == ["table", "view", "view"]


def test_a_rest_catalog_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"1:1/iceberg does not answer: Connection refused$"):
        open_source("http://127.0.0.1:1/iceberg")


def test_a_server_without_a_rest_catalog_is_named(served: Lake) -> None:
    with pytest.raises(InvalidInput, match="not the URL of a REST catalog"):
        open_source(f"{served.url}/nowhere")


# -- Glue -----------------------------------------------------------------------------------------


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with s3() as store:
        yield store


def endpoints(store: Store) -> dict[str, str]:
    """Returns the properties of a catalog, without secrets."""
    return {
        "glue.endpoint": store.url,
        "glue.region": "us-east-1",
        "s3.endpoint": store.url,
        "s3.region": "us-east-1",
    }


def test_a_glue_catalog_has_tables_and_databases(aws: Store) -> None:
    glue = load_catalog("mine", type="glue", **endpoints(aws))
    glue.create_namespace("db", {"location": "s3://lake/db", "owner": "ann"})
    table = glue.create_table("db.t", ROWS.schema)
    listing = listed("glue", properties=endpoints(aws))
    assert listing.namespaces == [
        SourceNamespace(("db",), {"owner": "ann", "location": "s3://lake/db"})
    ]
    assert listing.contents == [
        SourceContent(("db", "t"), SourceKind.TABLE, table.metadata_location)
    ]
    # PyIceberg lists nothing in a database that does not exist.
    assert messages(listed("glue", ("nowhere",), properties=endpoints(aws))) == [
        "no such namespace"
    ]


def test_a_glue_catalog_without_credentials_or_region_says_so(
    aws: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    region = {name: value for name, value in endpoints(aws).items() if "region" not in name}
    with pytest.raises(InvalidInput, match=r"--property client\.region=REGION"):
        listed("glue", properties=region)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(NotAllowed, match="credentials"):
        listed("glue", properties=endpoints(aws))


def test_a_folder_in_s3_is_a_source(aws: Store, tmp_path: Path) -> None:
    glue = load_catalog("mine", type="glue", **endpoints(aws))
    glue.create_namespace("files", {"location": "s3://lake/wh/files.db"})
    table = glue.create_table("files.t", ROWS.schema)
    table.append(ROWS)
    listing = listed("s3://lake/wh/", properties=endpoints(aws))
    assert [(content.name, content.metadata_location) for content in listing.contents] == [
        (("files", "t"), glue.load_table("files.t").metadata_location)
    ]
    assert not listing.problems
    with pytest.raises(NotFound, match="s3://lake/nowhere: no such folder"):
        listed("s3://lake/nowhere", properties=endpoints(aws))
    aws.close()
    with pytest.raises(StoreUnavailable, match="s3://lake/wh"):
        listed("s3://lake/wh", properties=endpoints(aws) | {"s3.connect-timeout": "1"})


# -- Hive -----------------------------------------------------------------------------------------


def test_hive_without_its_package_is_named_with_the_pip_line() -> None:
    if find_spec("thrift"):
        pytest.skip("PyIceberg's package for Hive is installed")
    with pytest.raises(InvalidInput, match=r"Hint: `pip install 'pyiceberg\[hive\]'`"):
        open_source("thrift://127.0.0.1:1", SourceType.HIVE)
