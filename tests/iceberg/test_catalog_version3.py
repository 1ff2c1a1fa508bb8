"""Tables of format version 3 in PyIceberg's catalog. PyIceberg reads their metadata only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    RemoveStatisticsUpdate,
    SetSnapshotRefUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.types import LongType, NestedField, TimestampNanoType

from tests.iceberg.lake import ROWS, Lake

VERSION_3 = {"format-version": "3"}


def document(table: Table) -> dict[str, Any]:
    """Returns the metadata file of a table as JSON."""
    found: dict[str, Any] = json.loads(Path(table.metadata_location).read_text())
    return found


def java_table(folder: Path, *fields: dict[str, Any]) -> str:
    """Writes metadata as Iceberg's Java library does, with some unknown members."""
    file = folder / "00000-6c97e413-d51b-4538-ac70-12fe2a85cb83.metadata.json"
    column = {"id": 1, "name": "id", "required": True, "type": "long", "vendor-hint": "u64"}
    made = {
        "format-version": 3,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1602638573590,
        "last-column-id": 1 + len(fields),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [column, *fields]}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "ann"},
        "current-snapshot-id": 7,
        "next-row-id": 5,
        "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "aGk="}],
        "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
        "snapshots": [
            {
                "sequence-number": 1,
                "snapshot-id": 7,
                "timestamp-ms": 1602638573590,
                "summary": {"operation": "append", "engine-name": "spark"},
                "manifest-list": f"{folder}/7.avro",
                "schema-id": 0,
                "first-row-id": 0,
                "added-rows": 5,
                "key-id": "k",
            }
        ],
        "snapshot-log": [{"timestamp-ms": 1602638573590, "snapshot-id": 7}],
        "metadata-log": [],
        "vendor": {"a": [1, 2]},
    }
    file.write_text(json.dumps(made))
    return str(file)


def snapshot(id_: int, parent: int | None, sequence: int, first_row_id: int) -> AddSnapshotUpdate:
    return AddSnapshotUpdate(
        snapshot=Snapshot(
            snapshot_id=id_,
            parent_snapshot_id=parent,
            sequence_number=sequence,
            manifest_list=f"/nowhere/{id_}.avro",
            summary=Summary(Operation.APPEND, **{"added-records": "3"}),
            schema_id=0,
            first_row_id=first_row_id,
            added_rows=3,
        )
    )


def main_at(id_: int) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate(ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=id_)


def test_a_new_table_of_format_version_3(lake: Lake) -> None:
    catalog = lake.catalog()
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "at", TimestampNanoType(), required=False),
    )
    table = catalog.create_table("orders", schema, properties=VERSION_3)
    assert (table.format_version, table.metadata.next_row_id) == (3, 0)  # type: ignore[union-attr]
    assert lake.catalog().load_table("orders") == table
    assert document(table)["schemas"][0]["fields"][1]["type"] == "timestamp_ns"
    assert table.scan().to_arrow().num_rows == 0


def test_a_staged_table_of_format_version_3(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_table_transaction(
        "orders", ROWS.schema, properties=VERSION_3
    ).commit_transaction()
    assert catalog.load_table("orders").format_version == 3


def test_a_type_of_format_version_3_needs_it(embedded: Lake) -> None:
    schema = Schema(NestedField(1, "at", TimestampNanoType(), required=False))
    with pytest.raises(ValueError, match="needs format version 3"):
        embedded.catalog().create_table("orders", schema)
    assert embedded.metadata_files() == set()


def test_format_version_4_is_refused(embedded: Lake) -> None:
    with pytest.raises(ValueError, match="format version 4 is not supported"):
        embedded.catalog().create_table("orders", ROWS.schema, properties={"format-version": "4"})


def test_columns_properties_and_partitions_of_a_table_can_be_changed(lake: Lake) -> None:
    catalog = lake.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties=VERSION_3)
    with table.update_schema() as update:
        update.add_column("price", LongType())
    with table.update_spec() as change:
        change.add_identity("name")
    table.transaction().set_properties({"a": "1"}).commit_transaction()
    found = lake.catalog().load_table("orders")
    assert found == table
    assert [field.name for field in found.schema().fields] == ["id", "name", "price"]
    assert [field.name for field in found.spec().fields] == ["name"]
    assert lake.messages()[:3] == [
        "change orders: properties a",
        "change orders: partitions",
        "change orders: schema",
    ]


def test_pyiceberg_cannot_append_rows_to_format_version_3(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties=VERSION_3)
    with pytest.raises(ValueError, match="Cannot write manifest for table version: 3"):
        table.append(ROWS)
    assert len(embedded.log()) == 1


def test_rows_of_a_table_keep_their_ids_when_it_is_upgraded(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    table.append(ROWS)
    catalog.commit_table(table, (), (UpgradeFormatVersionUpdate(format_version=3),))
    found = catalog.load_table("orders")
    assert (found.format_version, document(found)["next-row-id"]) == (3, 0)
    assert found.scan().to_arrow().num_rows == 3
    assert embedded.messages()[0] == "change orders: format version 3"


def test_a_snapshot_advances_the_next_row_id(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties=VERSION_3)
    requirement = AssertRefSnapshotId(ref="main", snapshot_id=None)
    catalog.commit_table(table, (requirement,), (snapshot(8, None, 1, 0), main_at(8)))
    found = document(catalog.load_table("orders"))
    assert (found["next-row-id"], found["snapshots"][0]["first-row-id"]) == (3, 0)
    assert embedded.messages()[0] == "append to orders: 3 rows"


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (snapshot(9, 8, 2, 2), "first-row-id 2, the next-row-id is 3"),
        (snapshot(9, 8, 1, 3), "sequence number 1, the last sequence number is 1"),
    ],
)
def test_a_snapshot_on_stale_metadata_is_a_failed_commit(
    embedded: Lake, update: AddSnapshotUpdate, words: str
) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties=VERSION_3)
    catalog.commit_table(table, (), (snapshot(8, None, 1, 0), main_at(8)))
    with pytest.raises(CommitFailedException, match=words):
        catalog.commit_table(table, (), (update, main_at(9)))
    assert embedded.metadata_files() == embedded.committed_files()


def test_a_snapshot_id_that_exists_is_refused(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema, properties=VERSION_3)
    catalog.commit_table(table, (), (snapshot(8, None, 1, 0),))
    with pytest.raises(ValueError, match="snapshot 8 already exists"):
        catalog.commit_table(table, (), (snapshot(8, None, 2, 3),))


def test_members_that_pyiceberg_does_not_know_are_preserved(lake: Lake, tmp_path: Path) -> None:
    catalog = lake.catalog()
    table = catalog.register_table("orders", java_table(tmp_path))
    before, first = document(table), table.metadata_location
    with table.update_schema() as update:
        update.make_column_optional("id")
    after = document(catalog.load_table("orders"))
    for member in ("vendor", "encryption-keys", "snapshots", "refs", "next-row-id", "table-uuid"):
        assert after[member] == before[member]
    assert after["schemas"][0] == before["schemas"][0]
    assert after["metadata-log"] == [
        {"metadata-file": first, "timestamp-ms": before["last-updated-ms"]}
    ]


def test_updates_that_change_nothing_write_no_file(embedded: Lake, tmp_path: Path) -> None:
    catalog = embedded.catalog()
    table = catalog.register_table("orders", java_table(tmp_path))
    head = embedded.head()
    catalog.commit_table(table, (), (RemoveStatisticsUpdate(snapshot_id=7),))
    assert embedded.head() == head


def test_defaults_of_columns_are_read(embedded: Lake, tmp_path: Path) -> None:
    column = {
        "id": 2,
        "name": "size",
        "required": False,
        "type": "int",
        "initial-default": 5,
        "write-default": 6,
    }
    table = embedded.catalog().register_table("orders", java_table(tmp_path, column))
    field = table.schema().find_field("size")
    assert (field.initial_default, field.write_default) == (5, 6)


@pytest.mark.parametrize("type_", ["unknown", "geometry", "timestamptz_ns"])
def test_types_that_pyiceberg_knows(embedded: Lake, tmp_path: Path, type_: str) -> None:
    column = {"id": 2, "name": "v", "required": False, "type": type_}
    table = embedded.catalog().register_table("orders", java_table(tmp_path, column))
    table.transaction().set_properties({"a": "1"}).commit_transaction()
    assert document(table)["schemas"][0]["fields"][1]["type"] == type_


def test_a_type_that_pyiceberg_does_not_know_is_named_and_nothing_is_committed(
    embedded: Lake, tmp_path: Path
) -> None:
    column = {"id": 2, "name": "v", "required": False, "type": "variant"}
    catalog = embedded.catalog()
    with pytest.raises(ValidationError, match=r"PyIceberg cannot load this metadata: .*variant"):
        catalog.register_table("orders", java_table(tmp_path, column))
    assert embedded.log() == []
