"""Tables in PyIceberg's catalog: one commit for each change, and PyIceberg's errors."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from nessie_cli.iceberg.metadata import read_content
from nessie_cli.model import CommitMeta, ContentKey, Delete, DeltaLakeTable, IcebergTable, Put
from tests.iceberg.lake import ROWS, Lake, sorted_rows

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


def test_every_change_is_one_commit_with_a_message(lake: Lake) -> None:
    catalog = lake.catalog(author="Ada <ada@example.org>")
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    table.overwrite(ROWS.slice(0, 2))
    with table.update_schema() as update:
        update.add_column("price", LongType())
    table.transaction().set_properties({"a": "1", "b": "2"}).commit_transaction()
    table.delete("id < 100")
    catalog.rename_table("sales.orders", "sales.old")
    catalog.drop_table("sales.old")

    assert lake.messages() == [
        "drop table sales.old",
        "rename table sales.orders to sales.old",
        "delete from sales.orders: 2 rows",
        "change sales.orders: properties a, b",
        "change sales.orders: schema",
        "overwrite sales.orders: 2 rows added, 3 deleted",
        "append to sales.orders: 3 rows",
        "create table sales.orders",
        "create namespace sales",
    ]
    assert {entry.meta.authors for entry in lake.log()} == {("Ada <ada@example.org>",)}
    assert {entry.meta.properties["application-type"] for entry in lake.log()} == {("iceberg",)}
    assert all(
        len(entry.operations or ()) == 1
        for entry in lake.log()
        if "rename" not in entry.meta.message
    )


def test_another_catalog_reads_what_one_has_written(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)

    found = lake.catalog().load_table("sales.orders")
    assert found.name() == ("sales", "orders")
    assert found == table
    assert sorted_rows(found) == ROWS.to_pylist()


def test_a_content_has_the_ids_of_its_metadata_file(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    order = SortOrder(SortField(1, IdentityTransform()))
    table = catalog.create_table("sales.orders", SCHEMA, partition_spec=spec, sort_order=order)
    assert lake.content("sales", "orders").snapshot_id == -1
    table.append(ROWS)
    with table.update_schema() as update:
        update.add_column("price", LongType())
    with table.update_spec() as change:
        change.remove_field("name")

    found = lake.content("sales", "orders")
    assert found.with_id(None) == read_content(table.metadata_location)
    assert found.snapshot_id == table.metadata.current_snapshot_id
    assert (found.schema_id, found.spec_id, found.sort_order_id) == (1, 1, 1)


def test_the_content_selects_the_current_state_in_its_file(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    first = table.metadata.current_snapshot_id
    with table.update_schema() as update:
        update.add_column("price", LongType())
    table.append(pa.table({"id": [4], "name": ["d"], "price": [5]}))
    now = embedded.content("sales", "orders")
    older = IcebergTable(
        id=now.id, metadata_location=now.metadata_location, snapshot_id=first or 0, schema_id=0
    )
    embedded.repository.commit(
        embedded.branch, [Put(ContentKey(("sales", "orders")), older, now)], CommitMeta("back")
    )

    found = catalog.load_table("sales.orders")
    assert sorted_rows(found) == ROWS.to_pylist()
    assert found.schema().schema_id == 0
    found.append(ROWS)
    assert len(sorted_rows(catalog.load_table("sales.orders"))) == 6


def test_updates_carry_the_content_that_they_replace(embedded: Lake) -> None:
    embedded.repository.put_setting("require-expected-content", "true")
    catalog = embedded.catalog()
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", ROWS.schema).append(ROWS)
    catalog.update_namespace_properties("sales", updates={"a": "1"})
    assert len(embedded.log()) == 4


def test_a_warehouse_may_be_a_uri(lake: Lake) -> None:
    catalog = lake.catalog(warehouse=lake.warehouse.as_uri())
    table = catalog.create_table("orders", ROWS.schema)
    table.append(ROWS)
    assert table.location().startswith(f"file://{lake.warehouse}/orders_")
    assert sorted_rows(catalog.load_table("orders")) == ROWS.to_pylist()


def test_a_transaction_is_one_commit(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", ROWS.schema)
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "ada"})
        with transaction.update_schema() as update:
            update.add_column("price", LongType())
        transaction.append(pa.table({"id": [1], "name": ["a"], "price": [9]}))
        transaction.append(pa.table({"id": [2], "name": ["b"], "price": [8]}))

    assert lake.messages()[0] == "append to sales.orders: 2 rows; schema, properties owner"
    assert lake.messages()[1] == "create table sales.orders"
    assert len(sorted_rows(catalog.load_table("sales.orders"))) == 2


def test_a_table_and_its_first_rows_are_one_commit(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    with catalog.create_table_transaction("sales.orders", ROWS.schema) as transaction:
        transaction.append(ROWS)
        assert not catalog.table_exists("sales.orders")

    assert lake.messages()[:2] == ["create table sales.orders: 3 rows", "create namespace sales"]
    assert sorted_rows(catalog.load_table("sales.orders")) == ROWS.to_pylist()


def test_the_second_of_two_staged_creations_fails(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    first, second = (
        catalog.create_table_transaction("sales.orders", ROWS.schema) for _ in range(2)
    )
    first.commit_transaction()
    with pytest.raises(CommitFailedException, match="table already exists"):
        second.commit_transaction()
    assert lake.metadata_files() == lake.committed_files()


@pytest.mark.parametrize("version", ["1", "2"])
def test_format_versions(lake: Lake, version: str) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    table = catalog.create_table(
        "sales.orders", ROWS.schema, properties={"format-version": version}
    )
    table.append(ROWS)
    found = catalog.load_table("sales.orders")
    assert str(found.format_version) == version
    assert found == table


def test_properties_become_strings_and_none_is_refused(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace("sales")
    assert (
        catalog.create_table("sales.orders", ROWS.schema, properties={"n": 42}).properties["n"]
        == "42"
    )
    with pytest.raises(ValueError, match="None type is not a supported value in properties: n"):
        catalog.create_table("sales.other", ROWS.schema, properties={"n": None})
    assert not catalog.table_exists("sales.other")


# -- where tables lie -----------------------------------------------------------------------------


def test_each_table_has_a_new_folder_even_if_its_name_was_used_before(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales.eu")
    first = catalog.create_table("sales.eu.orders", ROWS.schema).location()
    catalog.drop_table("sales.eu.orders")
    second = catalog.create_table("sales.eu.orders", ROWS.schema).location()
    assert first != second
    assert all(place.startswith(f"{lake.warehouse}/sales/eu/orders_") for place in (first, second))


def test_the_location_of_a_namespace_takes_precedence_over_the_warehouse(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales", {"location": f"{lake.folder}/elsewhere/"})
    assert (
        catalog.create_table("sales.orders", ROWS.schema)
        .location()
        .startswith(f"{lake.folder}/elsewhere/orders_")
    )


def test_a_given_location_loses_its_last_slash(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    assert (
        catalog.create_table(
            "sales.orders", ROWS.schema, location=f"{lake.folder}/here/"
        ).location()
        == f"{lake.folder}/here"
    )


def test_names_cannot_lead_out_of_the_warehouse(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace(("..",))
    table = catalog.create_table(("..", "a/b?c#d e"), ROWS.schema)
    assert table.location().startswith(f"{embedded.warehouse}/_/a_b_c_d_e_")
    table.append(ROWS)
    assert sorted_rows(catalog.load_table(("..", "a/b?c#d e"))) == ROWS.to_pylist()


def test_without_a_warehouse_a_location_is_needed(embedded: Lake) -> None:
    options = {name: value for name, value in embedded.options().items() if name != "warehouse"}
    with load_catalog("lake", **options) as catalog:
        with pytest.raises(ValueError, match="No default path is set, please specify a location"):
            catalog.create_table("orders", ROWS.schema)
        catalog.create_table("orders", ROWS.schema, location=f"{embedded.folder}/here").append(ROWS)


# -- errors ---------------------------------------------------------------------------------------


def test_a_missing_table(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    head = lake.head()
    assert not catalog.table_exists("sales.orders")
    for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
        with pytest.raises(NoSuchTableError, match=r"Table does not exist: sales\.orders"):
            call("sales.orders")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("sales.orders", "sales.other")
    assert lake.head() == head


def test_a_missing_namespace(lake: Lake) -> None:
    catalog = lake.catalog()
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.create_table("nowhere.orders", ROWS.schema)
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.create_table_transaction("nowhere.orders", ROWS.schema)
    catalog.create_table("orders", ROWS.schema)
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.rename_table("orders", "nowhere.orders")
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.list_tables("nowhere")
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.register_table("nowhere.orders", catalog.load_table("orders").metadata_location)
    assert lake.metadata_files() == lake.committed_files()


def test_a_table_that_already_exists(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", ROWS.schema)
    catalog.create_table("sales.other", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError, match=r"sales\.orders"):
        catalog.create_table("sales.orders", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError, match=r"sales\.orders"):
        catalog.rename_table("sales.other", "sales.orders")
    with pytest.raises(TableAlreadyExistsError, match=r"sales\.orders"):
        catalog.register_table("sales.orders", table.metadata_location)
    assert catalog.create_table_if_not_exists("sales.orders", ROWS.schema) == table
    assert lake.metadata_files() == lake.committed_files()


def test_a_name_used_by_another_type_is_refused(lake: Lake) -> None:
    lake.repository.commit(
        lake.branch,
        [Put(ContentKey(("delta",)), DeltaLakeTable(last_checkpoint="x"))],
        CommitMeta("delta"),
    )
    catalog = lake.catalog()
    catalog.create_namespace("space")
    with pytest.raises(NoSuchIcebergTableError, match="delta is a Delta Lake table"):
        catalog.load_table("delta")
    with pytest.raises(NoSuchTableError, match="its type is namespace"):
        catalog.drop_table("space")
    for name in ("delta", "space"):
        assert not catalog.table_exists(name)
        with pytest.raises(TableAlreadyExistsError, match=name):
            catalog.create_table(name, ROWS.schema)
    assert catalog.list_tables(()) == []


@pytest.mark.parametrize(
    "identifier", ["", "a..b", ".a", ("a", ""), (" ",), (), tuple("abcdefghijklmnopqrstuvwxyz")]
)
def test_invalid_identifiers_of_tables(embedded: Lake, identifier: str | tuple[str, ...]) -> None:
    catalog = embedded.catalog()
    with pytest.raises(NoSuchTableError):
        catalog.load_table(identifier)
    with pytest.raises(ValueError, match=r"Identifier is empty|elements"):
        catalog.create_table(identifier, ROWS.schema)


@pytest.mark.parametrize("damage", ["missing", "cut off", "no JSON", "unsound"])
def test_a_metadata_file_that_cannot_be_read_is_named(embedded: Lake, damage: str) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    file = Path(table.metadata_location)
    if damage == "missing":
        file.unlink()
    else:
        text = file.read_text()
        file.write_text(
            {
                "cut off": text[:100],
                "no JSON": "hello",
                "unsound": text.replace('"long"', '"lang"'),
            }[damage]
        )
    with pytest.raises(
        FileNotFoundError if damage == "missing" else ValidationError, match=file.name
    ):
        catalog.load_table("orders")
    assert catalog.table_exists("orders")
    catalog.drop_table("orders")


# -- rename, drop, register -----------------------------------------------------------------------


def test_a_renamed_table_keeps_its_content_id_and_can_be_written(lake: Lake) -> None:
    catalog = lake.catalog()
    for name in ("sales", "archive.y2026"):
        catalog.create_namespace(name)
    catalog.create_table("sales.orders", ROWS.schema).append(ROWS)
    before = lake.content("sales", "orders")
    renamed = catalog.rename_table(("sales", "orders"), "archive.y2026.orders")
    assert renamed.name() == ("archive", "y2026", "orders")
    assert lake.content("archive", "y2026", "orders") == before
    assert catalog.list_tables("sales") == []
    renamed.append(ROWS)
    assert len(sorted_rows(catalog.load_table("archive.y2026.orders"))) == 6


def test_a_rename_to_the_same_name_makes_no_commit(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    head = lake.head()
    assert catalog.rename_table("orders", "orders").name() == ("orders",)
    assert lake.head() == head


def test_a_table_created_again_is_a_different_table(lake: Lake) -> None:
    catalog = lake.catalog()
    old = catalog.create_table("orders", ROWS.schema)
    old_id = lake.content("orders").id
    catalog.drop_table("orders")
    with pytest.raises(NoSuchTableError):
        old.append(ROWS)
    catalog.create_table("orders", ROWS.schema)
    assert lake.content("orders").id != old_id
    with pytest.raises(CommitFailedException, match="UUID does not match"):
        old.transaction().set_properties({"a": "b"}).commit_transaction()


def test_a_dropped_table_is_still_in_older_commits(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema).append(ROWS)
    before = lake.head()
    catalog.drop_table("orders")
    assert (
        sorted_rows(lake.catalog(f"{lake.branch}@{before}").load_table("orders"))
        == ROWS.to_pylist()
    )


def test_a_purged_table_keeps_its_files_for_older_commits(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema).append(ROWS)
    before = lake.head()
    with caplog.at_level(logging.WARNING):
        catalog.purge_table("orders")
    assert "kept its files" in caplog.text
    assert not catalog.table_exists("orders")
    assert (
        sorted_rows(lake.catalog(f"{lake.branch}@{before}").load_table("orders"))
        == ROWS.to_pylist()
    )


def test_old_metadata_files_are_kept_whatever_a_property_says(lake: Lake) -> None:
    catalog = lake.catalog()
    keep_one = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    table = catalog.create_table("orders", ROWS.schema, properties=keep_one)
    for _ in range(3):
        table.append(ROWS)
    assert len(table.metadata.metadata_log) == 1
    assert lake.metadata_files() == lake.committed_files()
    assert len(lake.committed_files()) == 4


def test_new_tables_forbid_engines_to_delete_files(lake: Lake) -> None:
    catalog = lake.catalog()
    assert catalog.create_table("orders", ROWS.schema).properties["gc.enabled"] == "false"
    assert (
        catalog.create_table("other", ROWS.schema, properties={"gc.enabled": "true"}).properties[
            "gc.enabled"
        ]
        == "true"
    )


def test_a_registered_table(lake: Lake) -> None:
    catalog = lake.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    table.append(ROWS)
    registered = catalog.register_table("again", table.metadata_location)
    assert registered.metadata == table.metadata
    assert lake.messages()[0] == "register table again"
    assert lake.content("again").with_id(None) == lake.content("orders").with_id(None)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.metadata\.json: no such file"):
        catalog.register_table("third", str(lake.folder / "nowhere.metadata.json"))


def test_registering_over_a_table_keeps_the_id_of_the_same_table_only(lake: Lake) -> None:
    catalog = lake.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    first = table.metadata_location
    table.append(ROWS)
    other = catalog.create_table("other", ROWS.schema)
    before = lake.content("orders")

    assert catalog.register_table("orders", first, overwrite=True).current_snapshot() is None
    assert lake.content("orders").id == before.id
    catalog.register_table("orders", other.metadata_location, overwrite=True)
    assert lake.content("orders").id != before.id


def test_a_registered_table_without_uuid_can_be_changed(lake: Lake) -> None:
    catalog = lake.catalog()
    options = {"format-version": "1"}
    old = catalog.create_table("old", ROWS.schema, properties=options).metadata_location
    document = json.loads(Path(old.removeprefix("file://")).read_text())
    del document["table-uuid"]
    file = lake.folder / "without.metadata.json"
    file.write_text(json.dumps(document))

    table = catalog.register_table("again", str(file))
    own = table.metadata.table_uuid
    assert str(own) == lake.content("again").id
    table.append(ROWS)
    assert catalog.load_table("again").metadata.table_uuid == own
    assert catalog.load_table("again").scan().to_arrow().num_rows == 3


# -- no change, refused changes -------------------------------------------------------------------


def test_updates_that_change_nothing_make_no_commit(lake: Lake) -> None:
    catalog = lake.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties={"a": "1"})
    head = lake.head()
    response = catalog.commit_table(table, (), ())
    assert response.metadata_location == table.metadata_location
    assert lake.head() == head


def test_a_failed_requirement_leaves_no_files(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    one, two = catalog.load_table("orders"), catalog.load_table("orders")
    with one.update_schema() as update:
        update.add_column("price", LongType())
    head = lake.head()
    update = two.update_schema().add_column("size", LongType())
    with pytest.raises(CommitFailedException, match="current schema changed: expected id 0 != 1"):
        update.commit()
    assert lake.head() == head
    assert lake.metadata_files() == lake.committed_files()


def test_changes_apply_to_newer_metadata_if_the_requirements_hold(
    lake: Lake,
) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    one, two = catalog.load_table("orders"), catalog.load_table("orders")
    one.transaction().set_properties({"a": "1"}).commit_transaction()
    two.transaction().set_properties({"b": "2"}).commit_transaction()
    assert {"a": "1", "b": "2"}.items() <= catalog.load_table("orders").properties.items()


def test_a_dropped_table_cannot_be_changed(lake: Lake) -> None:
    catalog = lake.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    lake.repository.commit(lake.branch, [Delete(ContentKey(("orders",)))], CommitMeta("gone"))
    with pytest.raises(NoSuchTableError, match="orders"):
        table.transaction().set_properties({"a": "1"}).commit_transaction()
