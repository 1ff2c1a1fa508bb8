"""Differences of metadata files: of real tables of PyIceberg, and of files made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.comparison import Comparison, compare, describe
from nessie_cli.iceberg.metadata import read_content
from nessie_cli.model import Content, IcebergTable, Namespace
from nessie_cli.model.contents import MOST_PROPERTIES


def facts(
    before: Content | None, after: Content | None
) -> dict[str, tuple[str | None, str | None]]:
    found = compare(before, after)
    assert found.problems == ()
    return {f"{fact.what} {fact.name}".rstrip(): (fact.before, fact.after) for fact in found.facts}


@pytest.fixture
def table(folder_catalog, tmp_path: Path) -> Any:
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    catalog = folder_catalog(tmp_path)
    catalog.create_table(("db", "t"), schema)
    return catalog


def now(catalog: Any) -> IcebergTable:
    found = read_content(catalog.newest["db", "t"])
    assert isinstance(found, IcebergTable)
    return found


def test_columns_added_dropped_renamed_and_changed(table) -> None:
    before = now(table)
    with table.load_table(("db", "t")).update_schema() as update:
        update.add_column("amount", LongType(), required=False)
        update.rename_column("name", "title")
        update.update_column("id", LongType())
    middle = now(table)
    with table.load_table(("db", "t")).update_schema() as update:
        update.delete_column("amount")

    assert facts(before, middle) == {
        "column id": ("int", "long"),
        "column title": ("name string", "title string"),
        "column amount": (None, "long"),
    }
    assert facts(middle, now(table)) == {"column amount": ("long", None)}
    assert facts(middle, middle) == {}


def test_rows_files_and_operations_of_the_snapshots(table) -> None:
    before = now(table)
    data = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", "c"]})
    table.load_table(("db", "t")).append(data)
    one = now(table)
    table.load_table(("db", "t")).append(data)
    table.load_table(("db", "t")).overwrite(data.slice(0, 1))

    found = facts(before, one)
    assert (found["rows"], found["data-files"], found["operations"]) == (
        ("0", "3"),
        ("0", "1"),
        (None, "append"),
    )
    found = facts(one, now(table))
    assert (found["rows"], found["operations"]) == (("3", "1"), (None, "append, delete, append"))
    # Backwards: the older snapshot does not descend from the newer one. Only its operation counts.
    assert facts(now(table), one)["operations"] == (None, "append")


def test_partitions_sort_order_and_properties(table) -> None:
    before = now(table)
    found = table.load_table(("db", "t"))
    with found.update_spec() as update:
        update.add_field("id", BucketTransform(4), "bucket")
        update.add_identity("name")
    with found.transaction() as transaction:
        transaction.set_properties({"owner": "ada"})
    assert facts(before, now(table)) == {
        "partition": (None, "bucket[4](id), name"),
        "property owner": (None, "ada"),
    }


def test_all_facts_of_a_new_table_are_differences(table) -> None:
    found = facts(None, now(table))
    assert found["column id"] == (None, "int")
    assert found["rows"] == (None, "0")
    assert facts(now(table), None)["column id"] == ("int", None)


def test_contents_of_other_types_have_no_differences() -> None:
    assert compare(Namespace(elements=("a",)), None) == Comparison()
    assert compare(None, None) == Comparison()


# -- files made by hand ---------------------------------------------------------------------------


def document(**more: Any) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": "x",
        "location": "s3://lake/t",
        "last-column-id": 9,
        "current-schema-id": 0,
        "schemas": [
            {"schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "int", "required": True}]}
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    } | more


def written(path: Path, found: Any, **ids: Any) -> IcebergTable:
    path.write_text(found if isinstance(found, str) else json.dumps(found))
    return IcebergTable(metadata_location=str(path), **ids)


NESTED = {
    "type": "struct",
    "fields": [{"id": 3, "name": "street", "type": "string"}],
}
LISTED = {
    "type": "list",
    "element-id": 5,
    "element": {"type": "struct", "fields": [{"id": 6, "name": "n", "type": "int"}]},
}
MAPPED = {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "long"}


def test_columns_inside_columns_have_paths(tmp_path) -> None:
    fields = [
        {"id": 2, "name": "address", "type": NESTED},
        {"id": 4, "name": "items", "type": LISTED},
        {"id": 7, "name": "tags", "type": MAPPED},
    ]
    plain = written(tmp_path / "a.json", document())
    nested = written(tmp_path / "b.json", document(schemas=[{"schema-id": 0, "fields": fields}]))
    assert facts(plain, nested) == {
        "column id": ("int required", None),
        "column address": (None, "struct"),
        "column address.street": (None, "string"),
        "column items": (None, "list<struct>"),
        "column items.element.n": (None, "int"),
        "column tags": (None, "map<string, long>"),
    }


def test_the_content_selects_the_schema(tmp_path) -> None:
    schemas = [
        {"schema-id": n, "fields": [{"id": 1, "name": f"c{n}", "type": "int"}]} for n in (0, 1)
    ]
    path = tmp_path / "a.json"
    old, new = (written(path, document(schemas=schemas), schema_id=n) for n in (0, 1))
    assert facts(old, new) == {"column c1": ("c0 int", "c1 int")}


def test_sort_order_with_direction(tmp_path) -> None:
    order = {
        "order-id": 1,
        "fields": [
            {
                "source-id": 1,
                "transform": "identity",
                "direction": "desc",
                "null-order": "nulls-last",
            }
        ],
    }
    path = tmp_path / "a.json"
    old, new = (
        written(
            path,
            document(**{"sort-orders": [{"order-id": 0, "fields": []}, order]}),
            sort_order_id=n,
        )
        for n in (0, 1)
    )
    assert facts(old, new) == {"sort-order": (None, "id desc nulls-last")}


def test_an_expired_snapshot_has_no_counts(tmp_path) -> None:
    path = tmp_path / "a.json"
    old, new = written(path, document(), snapshot_id=5), written(path, document(), snapshot_id=6)
    assert facts(old, new) == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"format-version": 2}', "\x00\x01", "Obj\x01abc"]
)
def test_a_file_that_cannot_be_read_is_a_problem_with_its_name(tmp_path, text) -> None:
    good, bad = written(tmp_path / "good.json", document()), written(tmp_path / "bad.json", text)
    for pair in ((good, bad), (bad, good), (None, bad)):
        found = compare(*pair)
        assert found.facts == ()
        assert len(found.problems) == 1
        assert str(tmp_path / "bad.json") in found.problems[0]


def test_missing_files_and_unknown_file_systems_are_problems(tmp_path) -> None:
    found = compare(
        IcebergTable(metadata_location=str(tmp_path / "a.json")),
        IcebergTable(metadata_location="nofs://b.json"),
    )
    assert len(found.problems) == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"schemas": [{"schema-id": 0, "fields": [{"id": 1}]}]},
        {"schemas": [{"schema-id": 0, "fields": 7}]},
        {
            "schemas": [
                {"schema-id": 0, "fields": [{"id": 1, "name": "a", "type": {"type": "list"}}]}
            ]
        },
        {"schemas": [{"schema-id": 0, "fields": [{"id": [], "name": "a", "type": "int"}]}]},
        {"partition-specs": [{"spec-id": 0, "fields": [3]}]},
        {"properties": [1]},
        {"snapshots": [{"snapshot-id": 4, "summary": "none"}]},
    ],
)
def test_invalid_structures_are_a_problem_not_a_failure(tmp_path, odd) -> None:
    good = written(tmp_path / "good.json", document())
    bad = written(tmp_path / "bad.json", document(**odd), snapshot_id=4)
    (problem,) = compare(good, bad).problems
    assert "not valid Iceberg metadata" in problem


def data(before: Content | None, after: Content | None) -> tuple[int, ...] | None:
    """Returns the rows added and removed, and the files added and removed."""
    compared = compare(before, after)
    assert compared.problems == ()
    change = compared.data
    return None if change is None else structs.astuple(change)


def test_rows_and_files_added_and_removed(table) -> None:
    empty = now(table)
    loaded = table.load_table(("db", "t"))
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, schema=loaded.schema().as_arrow())
    loaded.append(rows)
    one = now(table)
    table.load_table(("db", "t")).append(rows)
    two = now(table)
    table.load_table(("db", "t")).delete("id == 1")
    less = now(table)
    assert data(empty, one) == (3, 0, 1, 0)
    assert data(None, two) == (6, 0, 2, 0)
    assert data(two, None) == (0, 6, 0, 2)
    assert data(one, two) == (3, 0, 1, 0)
    assert data(two, one) == (0, 3, 0, 1)
    # Each file is written again without one of its three rows.
    assert data(two, less) == (4, 6, 2, 2)
    assert data(None, empty) == (0, 0, 0, 0)
    assert data(None, None) is None


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., IcebergTable]:
    """Writes a metadata file with a line of snapshots, given as (id, summary), oldest first."""
    numbers = count()

    def make(*snapshots: tuple[int, dict[str, str]], expired: int = 0) -> IcebergTable:
        listed: list[dict[str, Any]] = []
        parent = None
        for id_, summary in snapshots:
            listed.append({"snapshot-id": id_, "timestamp-ms": 1, "summary": summary})
            if parent is not None:
                listed[-1]["parent-snapshot-id"] = parent
            parent = id_
        made = document(**{"current-snapshot-id": parent, "snapshots": listed[expired:]})
        path = tmp_path / f"{next(numbers)}.metadata.json"
        return written(path, made, snapshot_id=parent or -1)

    return make


APPEND = {"operation": "append", "added-records": "3", "added-data-files": "1"}
DELETE = {"operation": "delete", "deleted-records": "2", "deleted-data-files": "1"}
MARKED = {"operation": "overwrite", "added-position-deletes": "1"}
COMPACT = {
    "operation": "replace",
    "added-records": "6",
    "deleted-records": "6",
    "added-data-files": "1",
    "deleted-data-files": "2",
}


def test_data_of_sides_that_diverged(made) -> None:
    base = (1, APPEND)
    ours, theirs = made(base, (2, APPEND), (3, DELETE)), made(base, (4, DELETE), (5, MARKED))
    assert data(made(base), ours) == (3, 2, 1, 1)
    assert data(made(base), theirs) == (0, 3, 0, 1)
    assert data(ours, theirs) == (2, 6, 1, 2)
    assert data(theirs, ours) == (6, 2, 2, 1)


def test_data_of_replaced_and_expired_snapshots(made) -> None:
    assert data(made((1, APPEND)), made((1, APPEND), (2, COMPACT))) == (0, 0, 1, 2)
    # Without the common snapshot, what came between is unknown.
    assert data(made((1, APPEND)), made((1, APPEND), (2, APPEND), expired=1)) is None
    assert data(made((1, {})), made((2, {}))) is None
    assert data(made(), made()) == (0, 0, 0, 0)


def test_many_properties_are_compared_in_their_order() -> None:
    names = [f"p{number:06}" for number in range(MOST_PROPERTIES)]
    shuffled = Random(0).sample(names, len(names))
    documents = {"file:/a": dict.fromkeys(shuffled, "1"), "file:/b": dict.fromkeys(names, "2")}
    sides = [IcebergTable(metadata_location=location, snapshot_id=-1) for location in documents]

    def read(location: str) -> dict[str, Any]:
        return {"properties": documents[location]}

    assert [fact.name for fact in compare(*sides, read).facts] == names
    assert [name for name, _ in describe(sides[0], read("file:/a")).properties] == names
    # Larger ones would be compared while no other thread runs.
    documents["file:/b"]["one more"] = ""
    assert compare(*sides, read).problems == ("file:/b has more than 100,000 properties",)
    with pytest.raises(InvalidInput, match="file:/b has more than 100,000 properties"):
        describe(sides[1], read("file:/b"))
