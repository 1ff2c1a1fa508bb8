"""Options of PyIceberg's catalog: unknown options and secrets are refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchPropertyException

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.iceberg.locations import local_path
from tests.iceberg.lake import IMPLEMENTATION, ROWS, Lake


def test_load_catalog_opens_this_catalog(embedded: Lake) -> None:
    with load_catalog("lake", **embedded.options()) as catalog:
        assert isinstance(catalog, NessieCatalog)
        assert catalog.name == "lake"
        assert repr(catalog) == f"lake ({NessieCatalog})"


def test_uri_is_required() -> None:
    with pytest.raises(NoSuchPropertyException, match="uri is missing"):
        load_catalog("lake", **{"py-catalog-impl": IMPLEMENTATION})


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("reff", "reff: unknown option. Hint: did you mean ref?"),
        ("branch", "branch: unknown option. Hint: the options are uri, ref, warehouse"),
        ("access.token-fil", "did you mean access.token-file?"),
        ("access.nothing", "access.nothing: unknown option"),
    ],
)
def test_an_unknown_option(embedded: Lake, option: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint.replace("?", r"\?")):
        embedded.catalog(**{option: "x"})


@pytest.mark.parametrize(
    "option",
    ["token", "credential", "password", "access.token", "access.password", "access.client-secret"],
)
def test_a_secret_is_not_an_option(embedded: Lake, option: str) -> None:
    with pytest.raises(ValueError, match="secrets are not options") as caught:
        embedded.catalog(**{option: "geheim"})
    assert "geheim" not in str(caught.value)


def test_a_value_that_is_not_a_string(embedded: Lake) -> None:
    with pytest.raises(ValueError, match="ref must be a string"):
        NessieCatalog("lake", uri=embedded.uri, ref=3)  # type: ignore[arg-type]
    with load_catalog("lake", **embedded.options(), author=None) as catalog:
        assert catalog.list_namespaces() == []


@pytest.mark.parametrize("option", ["ref", "warehouse"])
def test_an_option_that_is_empty_does_not_mean_the_default(embedded: Lake, option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} is empty"):
        NessieCatalog("lake", **{**embedded.options(), option: ""})


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (" ", "ref is empty"),
        ("no such", "'no such'"),
        ("main ", "'main '"),
        ("main*no time", "'no time'"),
    ],
)
def test_an_invalid_reference_is_named(embedded: Lake, ref: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        embedded.catalog(ref)


def test_options_of_file_io_and_of_a_custom_file_io(embedded: Lake) -> None:
    catalog = embedded.catalog(
        **{"s3.region": "eu", "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", "mine": "x"}
    )
    table = catalog.create_table("orders", ROWS.schema)
    assert table.io.properties["s3.region"] == "eu"


def test_the_properties_of_a_table_choose_no_file_io(embedded: Lake) -> None:
    # Everybody who writes a table chooses them.
    catalog = embedded.catalog(**{"s3.region": "eu"})
    chosen = {"py-io-impl": "subprocess.Popen", "s3.endpoint": "http://evil.example"}
    catalog.create_table("orders", ROWS.schema, properties=chosen).append(ROWS)
    table = catalog.load_table("orders")
    assert table.scan().to_arrow().num_rows == ROWS.num_rows
    assert "s3.endpoint" not in table.io.properties


def test_the_properties_of_a_table_choose_no_code_for_its_writers(embedded: Lake) -> None:
    catalog, name = embedded.catalog(), "write.py-location-provider.impl"
    chosen = {name: "builtins.exec", "write.metadata.path": f"file://{embedded.folder}/meta"}
    catalog.create_table("orders", ROWS.schema, properties=chosen)
    table = catalog.load_table("orders")
    # With the property, PyIceberg would run the location of the table.
    table.append(ROWS)
    with table.transaction() as transaction:
        transaction.set_properties({"a": "b"})
    assert table.properties["a"] == "b"
    assert name not in table.properties
    file = local_path(catalog.load_table("orders").metadata_location)
    assert file.parent == embedded.folder / "meta"
    # Other catalogs see it.
    assert json.loads(file.read_text())["properties"][name] == "builtins.exec"


def test_a_relative_store_and_warehouse_become_absolute(
    embedded: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(embedded.folder)
    catalog = embedded.catalog(warehouse="here", uri="catalog.sqlite")
    monkeypatch.chdir("/")
    with pickle.loads(pickle.dumps(catalog)) as handed:
        handed.create_namespace("sales")
    assert catalog.namespace_exists("sales")
    assert (
        catalog.create_table("orders", ROWS.schema)
        .location()
        .startswith(f"{embedded.folder}/here/orders_")
    )


@pytest.mark.parametrize("bad", ["http://user:geheim@host/api/v2", "http://"])
def test_an_invalid_server_address(bad: str) -> None:
    with pytest.raises(ValueError, match="server") as caught:
        NessieCatalog("lake", uri=bad)
    assert "geheim" not in str(caught.value)


def test_the_author_is_the_option_then_the_environment(
    embedded: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESSIE_AUTHOR", "Bob")
    embedded.catalog().create_namespace("a")
    embedded.catalog(author="Ada").create_namespace("b")
    monkeypatch.delenv("NESSIE_AUTHOR")
    embedded.catalog().create_namespace("c")
    nobody, ada, bob = (entry.meta for entry in embedded.log())
    assert (ada.authors, bob.authors) == (("Ada",), ("Bob",))
    # The rule of every commit: without an author it is the committer.
    assert nobody.authors == (nobody.committer,)


def test_the_package_is_imported_without_pyiceberg() -> None:
    code = (
        "import sys, nessie_cli.iceberg, nessie_cli.iceberg.metadata; "
        "sys.exit('pyiceberg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
