"""PyIceberg's catalog over a warehouse in S3, by moto's server program."""

from __future__ import annotations

import pytest
from pyarrow.fs import FileSelector
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationError
from pyiceberg.types import LongType

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import IcebergTable, Put
from tests.gc.s3 import Store
from tests.iceberg.lake import ROWS, Lake, sorted_rows
from tests.iceberg.test_catalog_views import SQL, version


@pytest.fixture
def catalog(embedded: Lake, store: Store) -> NessieCatalog:
    """A catalog with its warehouse in a folder of the bucket."""
    return embedded.catalog(warehouse=f"s3://lake/{embedded.branch}", **store.properties)


def metadata_files(lake: Lake, store: Store) -> set[str]:
    """Those that are there."""
    found = store.files.get_file_info(
        FileSelector(f"lake/{lake.branch}", recursive=True, allow_not_found=True)
    )
    return {f"s3://{file.path}" for file in found if file.path.endswith(".metadata.json")}


def committed_files(lake: Lake) -> set[str]:
    puts = [
        operation
        for entry in lake.log()
        for operation in entry.operations or ()
        if isinstance(operation, Put)
    ]
    return {put.content.metadata_location for put in puts if isinstance(put.content, IcebergTable)}


def test_all_operations_of_a_catalog(embedded: Lake, store: Store, catalog: NessieCatalog) -> None:
    catalog.create_namespace("sales", {"owner": "ann"})
    orders = catalog.create_table("sales.orders", ROWS.schema)
    assert orders.location().startswith(f"s3://lake/{embedded.branch}/sales/orders_")
    orders.append(ROWS)
    orders.overwrite(ROWS.slice(0, 2))
    with orders.transaction() as transaction:
        transaction.append(ROWS.slice(2))
        transaction.set_properties({"a": "1"})
    with catalog.create_table_transaction("sales.new", ROWS.schema) as creation:
        creation.append(ROWS)
    catalog.rename_table("sales.new", "sales.late").append(ROWS)
    assert sorted_rows(catalog.load_table("sales.orders")) == ROWS.to_pylist()
    assert len(sorted_rows(catalog.register_table("sales.again", orders.metadata_location))) == 3
    catalog.create_view("sales.ids", ROWS.schema, version())
    assert catalog.load_view("sales.ids").sql_for("spark").sql == SQL
    assert catalog.load_view("sales.ids").location().startswith("s3://lake/")

    one, late = catalog.load_table("sales.orders"), catalog.load_table("sales.orders")
    one.update_schema().add_column("price", LongType()).commit()
    with pytest.raises(CommitFailedException, match="current schema changed"):
        late.update_schema().add_column("size", LongType()).commit()
    before = embedded.head()
    catalog.drop_table("sales.again")
    catalog.purge_table("sales.late")
    catalog.drop_view("sales.ids")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.late")
    old = embedded.catalog(
        f"@{before}", warehouse=f"s3://lake/{embedded.branch}", **store.properties
    )
    assert len(sorted_rows(old.load_table("sales.late"))) == 6
    assert {
        file for file in metadata_files(embedded, store) if "/ids_" not in file
    } == committed_files(embedded)


def test_an_unreadable_or_unwritable_file_is_named_and_nothing_is_committed(
    embedded: Lake, store: Store, catalog: NessieCatalog
) -> None:
    table = catalog.create_table("orders", ROWS.schema)
    file = table.metadata_location.removeprefix("s3://")
    head, files = embedded.head(), metadata_files(embedded, store)
    store.refused.add(("PUT", ".metadata.json"))
    try:
        with pytest.raises(OSError, match=r"metadata\.json.* ACCESS_DENIED"):
            table.append(ROWS)
        with pytest.raises(OSError, match=r"metadata\.json.* ACCESS_DENIED"):
            catalog.create_table("other", ROWS.schema)
    finally:
        store.refused.clear()
    assert (embedded.head(), metadata_files(embedded, store)) == (head, files)

    nowhere = embedded.catalog(warehouse="s3://nowhere/lake", **store.properties)
    with pytest.raises(OSError, match="bucket"):
        nowhere.create_table("other", ROWS.schema)
    store.put(file, b'{"format-version": 2, "loc')
    with pytest.raises(ValidationError, match=f"s3://{file}: truncated"):
        catalog.load_table("orders")
    store.files.delete_file(file)
    with pytest.raises(FileNotFoundError, match=f"s3://{file}: no such file"):
        catalog.load_table("orders")
    assert embedded.head() == head
