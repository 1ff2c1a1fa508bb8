"""Columns and sort orders that one side changed, and rows that the other side added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.update import SetDefaultSortOrderUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, StringType

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.file_merge import FileConflict
from tests.iceberg.combination.test_combination import (
    SCHEMA,
    Change,
    Lake,
    add_column,
    append,
    ids,
    path_of,
    set_property,
)


@pytest.fixture(params=[1, 2])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(tmp_path, request.param)


def require_v(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("v", required=True)


def drop_column(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("w")


def add_other_column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("y", StringType())


def drop_other_column(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("y")


def sort_by_v(table: Table) -> None:
    with table.update_sort_order() as update:
        update.asc("v", IdentityTransform())


def unsorted(table: Table) -> None:
    with table.transaction() as transaction:
        transaction._apply((SetDefaultSortOrderUpdate.model_validate({"sort-order-id": 0}),))


def append_null(table: Table) -> None:
    table.append(pa.table({"id": [9], "v": [None]}, schema=SCHEMA))


def without_metrics(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.metrics.default": "none"})
    table.append(pa.table({"id": [9], "v": ["x"]}, schema=SCHEMA))


@pytest.mark.parametrize("add_rows", [append_null, without_metrics])
def test_rows_that_may_be_null_in_a_required_column(lake: Lake, add_rows: Change) -> None:
    required, rows = lake.branch("required", require_v), lake.branch("rows", add_rows)
    for sides in ((required, rows), (rows, required)):
        (conflict,) = lake.combine(*sides).conflicts
        assert isinstance(conflict, FileConflict)
        assert conflict.reason == (
            "one side made columns required (v), and rows of the other may be null there"
        )
        assert [file.records for file in conflict.files] == [1]


def test_rows_with_values_in_a_required_column(lake: Lake) -> None:
    required, rows = lake.branch("required", require_v), lake.branch("rows", append(4))
    for sides in ((required, rows), (rows, required)):
        made = lake.combined(*sides)
        assert ids(made) == [1, 2, 3, 4]
        assert StaticTable.from_metadata(made).schema().find_field("v").required


def test_columns_that_the_table_had_before(lake: Lake) -> None:
    base = lake.branch("wide", add_column)
    ours = lake.branch("ours", append(4), start=base)
    theirs = lake.branch("theirs", drop_column, start=base)
    for sides in ((ours, theirs), (theirs, ours)):
        made = lake.combined(*sides, base=base)
        assert ids(made) == [1, 2, 3, 4]
        assert StaticTable.from_metadata(made).schema().column_names == ["id", "v"]


@pytest.mark.parametrize("first", [sort_by_v, unsorted])
def test_a_sort_order_that_the_table_had_before(lake: Lake, first: Change) -> None:
    base = lake.branch("sorted", sort_by_v, first)
    ours = lake.branch("ours", append(4), start=base)
    theirs = lake.branch("theirs", unsorted if first is sort_by_v else sort_by_v, start=base)
    made = StaticTable.from_metadata(lake.combined(ours, theirs, base))
    assert made.sort_order() == StaticTable.from_metadata(theirs).sort_order()


def test_the_id_of_a_dropped_column_is_not_given_out_again(lake: Lake) -> None:
    theirs = lake.branch("theirs", add_column, append(4), drop_column)
    made = lake.combined(lake.branch("ours", append(5)), theirs)
    assert ids(made) == [1, 2, 3, 4, 5]
    last = StaticTable.from_metadata(theirs).metadata.last_column_id
    assert StaticTable.from_metadata(made).metadata.last_column_id == last
    later = lake.branch("later", add_other_column, start=made)
    assert StaticTable.from_metadata(later).schema().find_field("y").field_id == last + 1


@pytest.mark.parametrize(
    ("member", "values", "reason"),
    [
        ("location", ["file:/a", "file:/b"], "changed the location"),
        ("encryption-keys", [[{"key-id": "a"}], []], "changed the encryption keys"),
        (
            "table-uuid",
            ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"],
            "changed the UUID of the table: it was dropped and created again",
        ),
    ],
)
def test_the_reason_names_the_side_that_changed(
    lake: Lake, member: str, values: Sequence[Any], reason: str
) -> None:
    plain = lake.branch("plain", append(5))

    def edited(name: str, value: Any) -> str:
        document = json.loads(path_of(lake.branch(name, append(4))).read_bytes())
        location = f"{lake.folder.as_uri()}/{name}.metadata.json"
        lake.write(location, json.dumps(document | {member: value}).encode())
        return location

    first, second = (edited(f"b{number}", value) for number, value in enumerate(values))
    for ours, theirs, who in (
        (plain, first, "theirs"),
        (first, plain, "ours"),
        (first, second, "both sides"),
    ):
        assert list(map(str, lake.combine(ours, theirs).conflicts)) == [f"{who} {reason}"]


def test_the_reason_names_the_side_that_is_older_than_the_base(lake: Lake) -> None:
    base = lake.branch("before", add_column)
    ours = lake.branch("ours", append(4), start=base)
    theirs = lake.branch("theirs", add_other_column)
    conflicts = lake.combine(ours, theirs, base=base).conflicts
    assert list(map(str, conflicts)) == ["the columns of theirs do not come from those of the base"]
    both = lake.branch("both", add_column, set_property("x"))
    assert list(map(str, lake.combine(both, lake.branch("y", add_other_column)).conflicts)) == [
        "both sides gave one id to different columns (w, y)"
    ]


def test_the_commit_that_a_table_was_loaded_from_does_not_collide(lake: Lake) -> None:
    """Iceberg's NessieCatalog writes it into the properties of each metadata file."""

    def loaded_from(commit: str) -> Change:
        def change(table: Table) -> None:
            with table.transaction() as transaction:
                transaction.set_properties({"nessie.commit.id": commit})

        return change

    ours = lake.branch("ours", loaded_from("a1"), append(4))
    theirs = lake.branch("theirs", loaded_from("b2"), append(5))
    assert ids(lake.combined(ours, theirs)) == [1, 2, 3, 4, 5]


def test_an_id_that_both_sides_gave_to_dropped_columns(lake: Lake) -> None:
    """Their files have different values under this id, which an undone drop would show."""
    ours = lake.branch("ours", add_column, append(4), drop_column)
    theirs = lake.branch("theirs", add_other_column, append(5), drop_other_column)
    for sides, names in (((ours, theirs), "w, y"), ((theirs, ours), "y, w")):
        assert list(map(str, lake.combine(*sides).conflicts)) == [
            f"both sides gave one id to different columns ({names})"
        ]
    same = lake.branch("same", add_column, append(6), drop_column)
    assert ids(lake.combined(ours, same)) == [1, 2, 3, 4, 6]


# -- an earlier state of the base, as in a revert --------------------------------------------------


def rename_v(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "text")


def drop_v(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("v")


def append_without_v(table: Table) -> None:
    table.append(pa.table({"id": [7]}))


def append_text(table: Table) -> None:
    table.append(pa.table({"id": [7], "text": ["t"]}))


def append_w(table: Table) -> None:
    table.append(pa.table({"id": [7], "v": ["x"], "w": ["y"]}))


def add_new_v(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("v", StringType())


def partition_by_w(table: Table) -> None:
    with table.update_spec() as update:
        update.add_identity("w")


def sort_by_w(table: Table) -> None:
    with table.update_sort_order() as update:
        update.asc("w", IdentityTransform())


def identify_by_w(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("w", required=True)
        update.set_identifier_fields("w")


def values(location: str) -> list[dict[str, Any]]:
    read = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    assert ids(location) == sorted(row["id"] for row in read)
    return sorted(read, key=lambda row: int(row["id"]))


def row(id_: int, v: str | None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "v": v, **more}


FIRST = [row(id_, "x") for id_ in (1, 2, 3)]


@pytest.mark.parametrize(
    ("change", "later", "rows"),
    [
        (rename_v, append_text, [*FIRST, row(7, "t")]),
        (add_column, append(7), [*FIRST, row(7, "x")]),
        (add_column, append_w, [*FIRST, row(7, "x")]),
        (drop_v, append_without_v, [*FIRST, row(7, None)]),
        (rename_v, add_other_column, [{**each, "y": None} for each in FIRST]),
        (drop_v, add_other_column, [{**each, "y": None} for each in FIRST]),
    ],
)
def test_columns_are_taken_back(
    lake: Lake, change: Change, later: Change, rows: list[dict[str, Any]]
) -> None:
    base = lake.branch("base2", change)
    ours = lake.branch("ours", later, start=base)
    made = lake.combined(ours, lake.base, base=base)
    assert values(made) == rows
    last = StaticTable.from_metadata(ours).metadata.last_column_id
    assert StaticTable.from_metadata(made).metadata.last_column_id == last
    # The revert of the revert.
    again = lake.combined(lake.branch("last", append(9), start=made), ours, base=made)
    assert StaticTable.from_metadata(again).schema() == StaticTable.from_metadata(ours).schema()


def test_rows_of_the_commit_are_taken_out_with_its_column(lake: Lake) -> None:
    base = lake.branch("base2", add_column, append_w)
    ours = lake.branch("ours", append(8), start=base)
    assert values(lake.combined(ours, lake.base, base=base)) == [*FIRST, row(8, "x")]


@pytest.mark.parametrize(("change", "later"), [(drop_v, add_new_v), (add_column, identify_by_w)])
def test_columns_that_later_columns_need_are_not_taken_back(
    lake: Lake, change: Change, later: Change
) -> None:
    base = lake.branch("base2", change)
    ours = lake.branch("ours", later, start=base)
    (conflict,) = lake.combine(ours, lake.base, base=base).conflicts
    assert str(conflict) == "both sides changed the columns"


@pytest.mark.parametrize("later", [partition_by_w, sort_by_w])
def test_columns_of_later_partitions_and_orders_are_not_taken_back(
    lake: Lake, later: Change
) -> None:
    base = lake.branch("base2", add_column)
    ours = lake.branch("ours", later, start=base)
    before = set(lake.folder.rglob("*"))
    with pytest.raises(InvalidInput, match="the schema has no field 3"):
        lake.combined(ours, lake.base, base=base)
    assert set(lake.folder.rglob("*")) == before


def test_a_column_without_values_is_not_required_again(lake: Lake) -> None:
    start = lake.branch("start", require_v)
    base = lake.branch("base2", drop_v, start=start)
    ours = lake.branch("ours", append_without_v, start=base)
    (conflict,) = lake.combine(ours, start, base=base).conflicts
    assert "made columns required (v)" in str(conflict)


def test_a_column_does_not_get_a_narrower_type_again(lake: Lake) -> None:
    def add_number(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("n", IntegerType())

    def promote(table: Table) -> None:
        with table.update_schema() as update:
            update.update_column("n", LongType())

    start = lake.branch("start", add_number)
    base = lake.branch("base2", promote, start=start)
    ours = lake.branch("ours", append(4), start=base)
    assert list(map(str, lake.combine(ours, start, base=base).conflicts)) == [
        "the columns of theirs do not come from those of the base"
    ]


def test_a_state_of_another_line_takes_nothing_back(lake: Lake) -> None:
    """Theirs gave the id of the column to another one, and dropped that again."""
    base = lake.branch("base2", add_column)
    ours = lake.branch("ours", append(4), start=base)
    theirs = lake.branch("theirs", add_other_column, drop_other_column)
    assert list(map(str, lake.combine(ours, theirs, base=base).conflicts)) == [
        "the columns of theirs do not come from those of the base"
    ]
