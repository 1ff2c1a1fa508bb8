"""The commit messages of PyIceberg's catalog for each kind of change."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from tests.iceberg.lake import ROWS, Lake


def _current(table: Table) -> int:
    assert table.metadata.current_snapshot_id is not None
    return table.metadata.current_snapshot_id


def _branch(table: Table) -> None:
    table.manage_snapshots().create_branch(_current(table), "audit").commit()
    table.append(ROWS, branch="audit")


def _drop_tag(table: Table) -> None:
    table.manage_snapshots().create_tag(_current(table), "v1").commit()
    table.manage_snapshots().remove_tag("v1").commit()


def _expire(table: Table) -> None:
    first = _current(table)
    table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(first).commit()


def _properties(table: Table) -> None:
    table.transaction().set_properties(dict.fromkeys("gfedcba", "1")).commit_transaction()


def _remove(table: Table) -> None:
    _properties(table)
    table.transaction().remove_properties("b", "a").commit_transaction()


CHANGES: dict[str, Callable[[Table], Any]] = {
    "append to db.orders: 1 row": lambda table: table.append(ROWS.slice(0, 1)),
    "append to db.orders: 1,200 rows": lambda table: table.append(pa.concat_tables([ROWS] * 400)),
    "delete from db.orders: 3 rows": lambda table: table.delete(),
    "overwrite db.orders: 2 rows added, 3 deleted": lambda table: table.delete("id = 2"),
    "overwrite db.orders: 1 row added, 3 deleted": lambda table: table.overwrite(ROWS.slice(0, 1)),
    "append to db.orders (branch audit of the table): 3 rows": _branch,
    "change db.orders: branch audit of the table": lambda table: (
        table.manage_snapshots()
        .create_branch(table.current_snapshot().snapshot_id, "audit")
        .commit()
    ),  # type: ignore[union-attr]
    "change db.orders: tag v1 of the table": lambda table: (
        table.manage_snapshots().create_tag(_current(table), "v1").commit()
    ),
    "change db.orders: without v1 of the table": _drop_tag,
    "change db.orders: 1 snapshot expired": _expire,
    "change db.orders: schema": lambda table: (
        table.update_schema().rename_column("name", "label").commit()
    ),
    "change db.orders: partitions": lambda table: table.update_spec().add_identity("name").commit(),
    "change db.orders: sort order": lambda table: (
        table.update_sort_order().asc("id", IdentityTransform()).commit()
    ),
    "change db.orders: properties a, b, c, d, e and 2 more": _properties,
    "change db.orders: without properties a, b": _remove,
    "change db.orders: format version 2": lambda table: (
        table.transaction().upgrade_table_version(2).commit_transaction()
    ),
}


@pytest.mark.parametrize("message", CHANGES)
def test_a_commit_message_describes_the_change(embedded: Lake, message: str) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace("db")
    table = catalog.create_table("db.orders", ROWS.schema, properties={"format-version": "1"})
    table.append(ROWS)
    with warnings.catch_warnings():
        # PyIceberg warns that deleting rows of one file rewrites it.
        warnings.simplefilter("ignore")
        CHANGES[message](table)
    assert embedded.messages()[0] == message


def test_names_with_dots_are_quoted(embedded: Lake) -> None:
    embedded.catalog().create_table(("orders.v1",), ROWS.schema)
    assert embedded.messages() == ['create table "orders.v1"']
