"""`--rows` on tables with changed columns, partitions or locations, or without rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, StringType

from tests.cli.lake import SCHEMA, Lake
from tests.cli.test_merging_rows import BY_ID, write
from tests.command.in_process import InProcess

Rows = dict[int, tuple[Any, ...]]
OURS: Rows = {1: ("ours", 1), 2: ("x", 1), 10: ("ours", 10)}
THEIRS: Rows = {1: ("x", 2), 2: ("x", 1), 3: ("x", 1), 20: ("theirs", 20)}
MERGED: Rows = {1: ("ours", 2), 2: ("x", 1), 10: ("ours", 10), 20: ("theirs", 20)}


def rename(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "w")


def promote(table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("n", LongType())


def reorder(table: Table) -> None:
    with table.update_schema() as update:
        update.move_first("n")


def partition(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(2), "bucket")


def partition_by_value(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("v", IdentityTransform(), "v_value")


def order(table: Table) -> None:
    with table.update_sort_order() as update:
        update.asc("v", IdentityTransform())


def property_(name: str, value: str) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({name: value})

    return change


CHANGES = [rename, promote, reorder, partition, partition_by_value, order]


def replace(lake: Lake, ref: str, rows: Rows) -> None:
    """Replaces all rows, whatever the columns are called."""
    with lake.table(ref) as table:
        names = {field.field_id: field.name for field in table.schema().fields}
        schema = table.schema().as_arrow()
        columns = {
            names[1]: list(rows),
            names[2]: [row[0] for row in rows.values()],
            names[3]: [row[1] for row in rows.values()],
        }
        table.overwrite(pa.table({field.name: columns[field.name] for field in schema}, schema))


def read_ids(lake: Lake, ref: str) -> Rows:
    with lake.table(ref) as table:
        names = {field.field_id: field.name for field in table.schema().fields}
        rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row[names[2]], row[names[3]]) for row in rows}


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("side", ["main", "dev"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_definition_that_one_side_changed(
    nessie: InProcess, lake: Lake, change: Callable[[Table], None], side: str, before: bool
) -> None:
    def changed() -> None:
        with lake.table(side) as table:
            change(table)

    if before:
        changed()
    replace(lake, "main", OURS)
    replace(lake, "dev", THEIRS)
    if not before:
        changed()
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0, ran.err
    assert read_ids(lake, "main") == MERGED
    assert nessie("audit").code == 0
    replace(lake, "main", {1: ("later", 1)})
    assert read_ids(lake, "main") == {1: ("later", 1)}


def require(lake: Lake, ref: str) -> None:
    with lake.table(ref) as table, table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("v", required=True)


def test_rows_of_ours_without_a_value_that_theirs_requires(nessie: InProcess, lake: Lake) -> None:
    replace(lake, "main", {1: (None, 1), 2: ("x", 1), 3: ("x", 1)})
    require(lake, "dev")
    replace(lake, "dev", {1: ("x", 1), 2: ("x", 2), 3: ("x", 1)})
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert "one side made columns required (v)" in " ".join(ran.err.split())


def test_rows_of_theirs_without_a_value_that_ours_requires(nessie: InProcess, lake: Lake) -> None:
    require(lake, "main")
    replace(lake, "main", {1: ("x", 1), 2: ("x", 2), 3: ("x", 1)})
    replace(lake, "dev", {1: (None, 1), 2: ("x", 1), 3: ("x", 1)})
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert "the column v is required, and would be null" in " ".join(ran.err.split())


def test_new_files_are_at_the_location_of_data(nessie: InProcess, lake: Lake) -> None:
    folder = lake.folder / "elsewhere"
    for ref in ("main", "dev"):
        with lake.table(ref) as table:
            property_("write.data.path", f"{folder}/")(table)
    replace(lake, "main", OURS)
    replace(lake, "dev", THEIRS)
    before = {path for path in lake.files() if folder not in path.parents}
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0, ran.err
    after = {path for path in lake.files() if folder not in path.parents}
    assert {p.suffix for p in after - before} <= {".json", ".avro"}, after - before
    assert read_ids(lake, "main") == MERGED


def test_object_storage(nessie: InProcess, lake: Lake) -> None:
    for ref in ("main", "dev"):
        with lake.table(ref) as table:
            property_("write.object-storage.enabled", "true")(table)
    replace(lake, "main", OURS)
    replace(lake, "dev", THEIRS)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0, ran.err
    assert read_ids(lake, "main") == MERGED


def test_a_column_that_one_side_added(nessie: InProcess, lake: Lake) -> None:
    with lake.table("main") as table, table.update_schema() as update:
        update.add_column("more", StringType())
    schema = SCHEMA.append(pa.field("more", pa.string()))
    columns = {"id": [1, 2, 3], "v": ["x"] * 3, "n": [1] * 3, "more": ["a", "b", None]}
    with lake.table("main") as table:
        table.overwrite(pa.table(columns, schema))
    write(lake, "dev", {1: ("theirs", 1), 2: ("x", 1), 4: ("x", 1)})
    for source, target in (("dev", "main"), ("main", "dev")):
        ran = nessie("merge", source, "--into", target, *BY_ID)
        assert ran.code == 0, ran.err
        with lake.table(target) as table:
            rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["id"])
        assert rows == [
            {"id": 1, "v": "theirs", "n": 1, "more": "a"},
            {"id": 2, "v": "x", "n": 1, "more": "b"},
            {"id": 4, "v": "x", "n": 1, "more": None},
        ]


def test_a_column_that_one_side_dropped(nessie: InProcess, lake: Lake) -> None:
    with lake.table("dev") as table, table.update_schema() as update:
        update.delete_column("v")
    write(lake, "main", OURS)
    with lake.table("dev") as table:
        table.overwrite(pa.table({"id": [1, 2], "n": [5, 1]}, SCHEMA.remove(1)))
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert "dropped the column v" in ran.err


@pytest.mark.parametrize("side", ["main", "dev"])
def test_a_side_without_rows(nessie: InProcess, lake: Lake, side: str) -> None:
    replace(lake, "main", OURS if side == "dev" else {})
    replace(lake, "dev", THEIRS if side == "main" else {})
    assert nessie("merge", "dev", *BY_ID).code == 3
    ran = nessie("merge", "dev", *BY_ID, "--rows-theirs", "db.t")
    assert ran.code == 0, ran.err
    theirs = {20: ("theirs", 20), 1: ("x", 2)}
    assert read_ids(lake, "main") == (theirs if side == "main" else {10: ("ours", 10)})


def test_a_base_without_rows(nessie: InProcess, lake: Lake) -> None:
    with lake.catalog("main") as catalog:
        catalog.create_table("db.e", SCHEMA)
    assert nessie("branch", "other", "main").code == 0
    for ref, rows in (("main", {1: "x", 2: "x"}), ("other", {1: "x", 2: "y", 3: "y"})):
        columns = {"id": list(rows), "v": list(rows.values()), "n": [1] * len(rows)}
        with lake.catalog(ref) as catalog:
            catalog.load_table("db.e").append(pa.table(columns, SCHEMA))
    ran = nessie("merge", "other", *BY_ID)
    assert ran.code == 3, (ran.out, ran.err)
    assert "both sides added a row with this key" in ran.err
    ran = nessie("merge", "other", *BY_ID, "--rows-theirs", "db.e")
    assert ran.code == 0, ran.err
    with lake.catalog("main") as catalog:
        rows = catalog.load_table("db.e").scan().to_arrow().to_pylist()
    assert {(row["id"], row["v"]) for row in rows} == {(1, "x"), (2, "y"), (3, "y")}
    assert len(rows) == 3
    assert nessie("audit").code == 0


def test_both_add_one_key_to_a_table_without_identifier_fields(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 7)
    lake.append("dev", 7, 8)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0, ran.err
    assert lake.ids("main") == [1, 2, 3, 7, 8]


def test_both_add_one_key_and_one_compacts(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 7)
    lake.append("dev", 7, 8)
    with lake.table("main") as table:
        rows = table.scan().to_arrow()
        table.overwrite(rows)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0, ran.err
    assert lake.ids("main") == [1, 2, 3, 7, 8]


@pytest.mark.parametrize("side", ["main", "dev"])
def test_a_key_that_one_side_renamed(nessie: InProcess, lake: Lake, side: str) -> None:
    lake.append("main", 7)
    lake.append("dev", 7, 8)
    with lake.table(side) as table, table.update_schema() as update:
        update.rename_column("id", "number")
    ran = nessie("merge", "dev", "--rows", "--key", "number")
    assert ran.code == 0, ran.err
    with lake.table("main") as table:
        numbers = [row["number"] for row in table.scan().to_arrow().to_pylist()]
    assert sorted(numbers) == [1, 2, 3, 7, 8]
