"""Views in PyIceberg's catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from nessie_cli.iceberg.metadata import read_content
from nessie_cli.model import ContentKey, IcebergView
from tests.iceberg.lake import ROWS, Lake

SQL = "select id from sales.orders"


def version(*dialects: str) -> ViewVersion:
    representations = [
        ViewRepresentation(SQLViewRepresentation(type="sql", sql=SQL, dialect=dialect))
        for dialect in dialects or ("spark",)
    ]
    return ViewVersion(
        version_id=1, schema_id=-1, representations=representations, default_namespace=("sales",)
    )


def test_a_view_is_created_and_read_back(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    made = catalog.create_view(
        "sales.ids", ROWS.schema.remove(1), version(), properties={"comment": "ids"}
    )
    found = lake.catalog().load_view("sales.ids")
    assert found == made
    assert found.name() == ("sales", "ids")
    assert found.sql_for("spark").sql == SQL
    assert [field.name for field in found.schema().fields] == ["id"]
    assert found.properties == {"comment": "ids"}
    assert found.location().startswith(f"{lake.warehouse}/sales/ids_")
    assert catalog.view_exists("sales.ids")
    assert catalog.list_views("sales") == [("sales", "ids")]
    assert catalog.list_tables("sales") == []
    assert lake.messages()[0] == "create view sales.ids"

    content = lake.repository.content(lake.branch, ContentKey(("sales", "ids")))
    assert isinstance(content, IcebergView)
    assert content.with_id(None) == read_content(content.metadata_location)
    assert (content.version_id, content.sql_text, content.dialect) == (1, SQL, "spark")


def test_the_file_of_a_view_follows_the_specification(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_view("ids", ROWS.schema, version("spark", "trino"))
    (file,) = embedded.metadata_files()
    document = json.loads(Path(file).read_text())
    assert document["format-version"] == 1
    assert (
        document["current-version-id"]
        == document["versions"][0]["version-id"]
        == document["version-log"][0]["version-id"]
        == 1
    )
    assert document["versions"][0]["schema-id"] == document["schemas"][0]["schema-id"] == 0
    assert [r["dialect"] for r in document["versions"][0]["representations"]] == ["spark", "trino"]
    assert document["versions"][0]["default-namespace"] == ["sales"]
    assert {"view-uuid", "location", "properties"} <= document.keys()


def test_used_names_are_refused(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    made = catalog.create_view("ids", ROWS.schema, version())
    catalog.create_namespace("space")
    content = lake.repository.content(lake.branch, ContentKey(("ids",)))
    assert isinstance(content, IcebergView)
    with pytest.raises(ViewAlreadyExistsError, match="ids"):
        catalog.create_view("ids", ROWS.schema, version())
    with pytest.raises(ViewAlreadyExistsError, match="space"):
        catalog.create_view("space", ROWS.schema, version())
    with pytest.raises(TableAlreadyExistsError, match="orders"):
        catalog.create_view("orders", ROWS.schema, version())
    with pytest.raises(TableAlreadyExistsError, match="ids"):
        catalog.create_table("ids", ROWS.schema)
    with pytest.raises(ViewAlreadyExistsError, match="ids"):
        catalog.register_view("ids", content.metadata_location)
    with pytest.raises(TableAlreadyExistsError, match="orders"):
        catalog.register_view("orders", content.metadata_location)
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.create_view("nowhere.ids", ROWS.schema, version())
    assert catalog.load_view("ids") == made


def test_a_missing_view(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    for name in ("ids", "orders"):
        assert not catalog.view_exists(name)
        for call in (catalog.load_view, catalog.drop_view):
            with pytest.raises(NoSuchViewError, match=f"View does not exist: {name}"):
                call(name)
    assert catalog.table_exists("orders")


def test_a_view_is_dropped_and_registered_again(lake: Lake) -> None:
    catalog = lake.catalog()
    made = catalog.create_view("ids", ROWS.schema, version())
    content = lake.repository.content(lake.branch, ContentKey(("ids",)))
    assert isinstance(content, IcebergView)
    catalog.drop_view("ids")
    assert not catalog.view_exists("ids")
    assert catalog.register_view("again", content.metadata_location).metadata == made.metadata
    assert lake.messages()[:2] == ["register view again", "drop view ids"]


def test_metadata_of_the_other_kind_is_not_registered(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    with pytest.raises(ValidationError, match="metadata of a table, not of a view"):
        catalog.register_view("ids", table.metadata_location)
    catalog.create_view("ids", ROWS.schema, version())
    content = embedded.repository.content(embedded.branch, ContentKey(("ids",)))
    assert isinstance(content, IcebergView)
    with pytest.raises(ValidationError, match="metadata of a view, not of a table"):
        catalog.register_table("third", content.metadata_location)


def test_the_content_selects_the_version_of_a_view(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_view("ids", ROWS.schema, version())
    (name,) = embedded.metadata_files()
    file = Path(name)
    document = json.loads(file.read_text())
    document["versions"].append({**document["versions"][0], "version-id": 2})
    document["current-version-id"] = 2
    file.write_text(json.dumps(document))
    assert catalog.load_view("ids").current_version().version_id == 1
    assert catalog.register_view("newer", name).current_version().version_id == 2
