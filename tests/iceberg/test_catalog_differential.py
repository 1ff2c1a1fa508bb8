"""Compares PyIceberg's own catalog with ours: equal results and errors, except `DIFFERENT`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType

from nessie_cli.iceberg.catalog import NessieCatalog
from tests.iceberg.lake import ROWS, new_store
from tests.iceberg.test_catalog_tables import SCHEMA

Pair = tuple[Catalog, Catalog]
MORE = pa.table({"id": [3, 4], "name": ["C", "D"]})
SPEC = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "part"))
OUR_PROPERTIES = ("gc.enabled", "write.parquet.compression-codec")
ORDER = SortOrder(SortField(2, IdentityTransform()))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """PyIceberg's catalog and ours, both empty."""
    theirs = SqlCatalog(
        "theirs", uri=f"sqlite:///{tmp_path}/theirs.sqlite", warehouse=f"{tmp_path}/theirs"
    )
    with (
        closing(theirs),
        NessieCatalog("ours", uri=new_store(tmp_path), warehouse=f"{tmp_path}/ours") as ours,
    ):
        yield theirs, ours


def seen(call: Callable[[], object]) -> object:
    """Returns the result of a call, or the name of Python's or PyIceberg's error."""
    try:
        return shown(call())
    except Exception as error:  # noqa: BLE001 - that is what is compared
        return next(
            kind.__name__
            for kind in type(error).__mro__
            if kind.__module__ in ("builtins", "pyiceberg.exceptions")
        )


def shown(value: object) -> object:
    """Returns a result without locations, UUIDs, snapshot ids, and our properties of new tables."""
    if isinstance(value, Table):
        data = value.metadata
        properties = {
            name: text for name, text in value.properties.items() if name not in OUR_PROPERTIES
        }
        operations = [
            snapshot.summary.operation.value for snapshot in data.snapshots if snapshot.summary
        ]
        rows = value.scan().to_arrow()
        plain = sorted(rows.to_pylist(), key=str), rows.schema.names
        about = (
            value.name(),
            data.format_version,
            str(value.schema()),
            str(value.spec()),
            str(value.sort_order()),
            tuple(value.refs()),
        )
        return *about, properties, operations, len(data.metadata_log), plain
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    return sorted(value) if isinstance(value, list) else value


def base(catalog: Catalog) -> Table:
    catalog.create_namespace("a", {"owner": "ann"})
    return catalog.create_table("a.t", SCHEMA, properties={"n": 1})


def filled(catalog: Catalog) -> Table:
    table = base(catalog)
    table.append(ROWS)
    return table


def stale(catalog: Catalog) -> Table:
    """Returns a table as it was before another writer changed its columns."""
    found = filled(catalog)
    with catalog.load_table("a.t").update_schema() as update:
        update.add_column("price", LongType())
    return found


def replaced(catalog: Catalog) -> Table:
    """Returns a dropped table whose name another table has now."""
    found = base(catalog)
    catalog.drop_table("a.t")
    catalog.create_table("a.t", SCHEMA)
    return found


def dropped(catalog: Catalog) -> Table:
    found = base(catalog)
    catalog.drop_table("a.t")
    return found


def transacted(catalog: Catalog) -> Table:
    with filled(catalog).transaction() as transaction:
        transaction.set_properties({"x": "1"})
        with transaction.update_schema() as update:
            update.add_column("price", LongType())
        transaction.append(pa.table({"id": [9], "name": ["z"], "price": [1]}))
        transaction.delete("id = 1")
    return catalog.load_table("a.t")


def given_up(catalog: Catalog) -> Table:
    """Leaves the block of a transaction with an error."""
    with suppress(KeyError), base(catalog).transaction() as transaction:
        transaction.append(MORE)
        raise KeyError
    return catalog.load_table("a.t")


def created(catalog: Catalog) -> Table:
    catalog.create_namespace("a")
    with catalog.create_table_transaction(
        "a.new", SCHEMA, partition_spec=SPEC, sort_order=ORDER, properties={"p": "1"}
    ) as transaction:
        transaction.append(ROWS)
        transaction.append(MORE)
    return catalog.load_table("a.new")


def staged_twice(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    first, second = (catalog.create_table_transaction("a.new", SCHEMA) for _ in range(2))
    first.commit_transaction()
    second.commit_transaction()


def damaged(catalog: Catalog, data: str | None) -> Table:
    """Loads a table whose metadata file has these contents. None: the file is missing."""
    file = Path(base(catalog).metadata_location)
    file.unlink() if data is None else file.write_text(data)
    return catalog.load_table("a.t")


def after(
    first: Callable[[Catalog], object], then: Callable[[Catalog], object]
) -> Callable[[Catalog], object]:
    """Returns two calls, one after the other, on the same catalog."""

    def both(catalog: Catalog) -> object:
        first(catalog)
        return then(catalog)

    return both


def upon(
    first: Callable[[Catalog], Table], then: Callable[[Table], object]
) -> Callable[[Catalog], object]:
    """Returns a change of a table, which then returns the table."""

    def both(catalog: Catalog) -> object:
        then(first(catalog))
        return catalog.load_table("a.t")

    return both


CALLS: dict[str, Callable[[Catalog], object]] = {
    "create": after(
        base,
        lambda c: c.create_table(
            "a.x", SCHEMA, None, SPEC, ORDER, {"p": "1", "format-version": "1"}
        ),
    ),
    "create, taken": after(base, lambda c: c.create_table("a.t", SCHEMA)),
    "create, no namespace": lambda c: c.create_table("nowhere.t", SCHEMA),
    "create, property none": after(
        base, lambda c: c.create_table("a.x", SCHEMA, properties={"x": None})
    ),
    "create, format 3": after(
        base, lambda c: c.create_table("a.x", SCHEMA, properties={"format-version": "3"})
    ),
    "create if not there": after(base, lambda c: c.create_table_if_not_exists("a.t", ROWS.schema)),
    "create, empty name": after(base, lambda c: c.create_table("", SCHEMA)),
    "create with rows": created,
    "create, staged twice": staged_twice,
    "staged, no namespace": lambda c: c.create_table_transaction(
        "nowhere.t", SCHEMA
    ).commit_transaction(),
    "load": after(base, lambda c: c.load_table(("a", "t"))),
    "load, none": after(base, lambda c: c.load_table("a.x")),
    "load, no namespace": lambda c: c.load_table("nowhere.t"),
    "load, no file": lambda c: damaged(c, None),
    "load, no JSON": lambda c: damaged(c, "x"),
    "load, cut off": lambda c: damaged(c, '{"format-version": 2, "loc'),
    "exists": after(
        base,
        lambda c: (
            c.table_exists("a.t"),
            c.table_exists("a.x"),
            c.table_exists("b.t"),
            c.namespace_exists("a"),
            c.namespace_exists("b"),
        ),
    ),
    "append": upon(base, lambda t: t.append(MORE)),
    "append, other columns": upon(base, lambda t: t.append(pa.table({"id": [1], "other": ["x"]}))),
    "overwrite": upon(filled, lambda t: t.overwrite(MORE)),
    "overwrite some": upon(filled, lambda t: t.overwrite(MORE, overwrite_filter="id = 3")),
    "delete": upon(filled, lambda t: t.delete("id > 1")),
    "delete nothing": upon(filled, lambda t: t.delete("id = 100")),
    "upsert": upon(filled, lambda t: t.upsert(MORE, join_cols=["id"])),
    "transaction": transacted,
    "transaction given up": given_up,
    "stale append": upon(stale, lambda t: t.append(MORE)),
    "stale schema": upon(stale, lambda t: t.update_schema().add_column("x", LongType()).commit()),
    "stale properties": upon(
        stale, lambda t: t.transaction().set_properties({"x": "1"}).commit_transaction()
    ),
    "replaced append": upon(replaced, lambda t: t.append(MORE)),
    "replaced properties": upon(
        replaced, lambda t: t.transaction().set_properties({"x": "1"}).commit_transaction()
    ),
    "dropped append": upon(dropped, lambda t: t.append(MORE)),
    "dropped properties": upon(
        dropped, lambda t: t.transaction().set_properties({"x": "1"}).commit_transaction()
    ),
    "tag of a table": upon(
        filled,
        lambda t: (
            t.manage_snapshots().create_tag(t.metadata.current_snapshot_id or 0, "monday").commit()
        ),
    ),
    "rename": after(base, lambda c: (c.rename_table("a.t", "a.x"), c.list_tables("a"))[0]),
    "rename, none": after(base, lambda c: c.rename_table("a.x", "a.y")),
    "rename, taken": after(
        base, lambda c: (c.create_table("a.x", SCHEMA), c.rename_table("a.t", "a.x"))[0]
    ),
    "rename, no namespace": after(base, lambda c: c.rename_table("a.t", "b.t")),
    "rename, itself": after(base, lambda c: c.rename_table("a.t", "a.t")),
    "drop": after(base, lambda c: (c.drop_table("a.t"), c.list_tables("a"), c.table_exists("a.t"))),
    "drop, none": after(base, lambda c: c.drop_table("a.x")),
    "purge": after(base, lambda c: (c.purge_table("a.t"), c.table_exists("a.t"))),
    "purge, none": after(base, lambda c: c.purge_table("a.x")),
    "register": lambda c: c.register_table("a.x", base(c).metadata_location),
    "register, taken": lambda c: c.register_table("a.t", base(c).metadata_location),
    "register, no file": after(base, lambda c: c.register_table("a.x", "/nowhere/x.metadata.json")),
    "register, no namespace": lambda c: c.register_table("b.x", base(c).metadata_location),
    "register over": lambda c: c.register_table("a.t", base(c).metadata_location, overwrite=True),
    "namespaces": after(
        base,
        lambda c: (
            c.create_namespace("a.b"),
            c.create_namespace("c"),
            (c.list_namespaces(), c.list_namespaces("a"), c.list_namespaces("c")),
        )[2],
    ),
    "namespace, taken": after(base, lambda c: c.create_namespace("a")),
    "namespace, if not there": after(
        base,
        lambda c: (
            c.create_namespace_if_not_exists("a", {"x": "1"}),
            c.load_namespace_properties("a"),
        )[1],
    ),
    "namespace, empty name": lambda c: c.create_namespace(""),
    "namespace, without properties": lambda c: (
        c.create_namespace("a"),
        c.load_namespace_properties("a"),
    )[1],
    "namespace, property none": lambda c: c.create_namespace("a", {"x": None}),
    "namespace, list none": lambda c: c.list_namespaces("nowhere"),
    "namespace, tables of none": lambda c: c.list_tables("nowhere"),
    "namespace, properties of none": lambda c: c.load_namespace_properties("nowhere"),
    "namespace, drop": after(
        base, lambda c: (c.drop_table("a.t"), c.drop_namespace("a"), c.list_namespaces())[2]
    ),
    "namespace, drop full": after(base, lambda c: c.drop_namespace("a")),
    "namespace, drop with one below": lambda c: (
        c.create_namespace("a"),
        c.create_namespace("a.b"),
        c.drop_namespace("a"),
    )[2],
    "namespace, drop none": lambda c: c.drop_namespace("a"),
    "update": after(
        base,
        lambda c: (
            vars(c.update_namespace_properties("a", {"owner", "x"}, {"y": "1"})),
            c.load_namespace_properties("a"),
        ),
    ),
    "update, overlap": after(
        base, lambda c: c.update_namespace_properties("a", {"owner"}, {"owner": "1"})
    ),
    "update, none": lambda c: c.update_namespace_properties("a", updates={"x": "1"}),
    "table at the root": lambda c: c.create_table("t", SCHEMA),
}

DIFFERENT = {
    "create, format 3": "theirs cannot write format version 3",
    "namespace, without properties": "theirs stores exists=true",
    "namespace, property none": "theirs raises SQLAlchemy's error",
    "namespace, drop with one below": "theirs leaves the one below",
    "register over": "theirs cannot",
    "create, empty name": "theirs asks for a namespace first",
    "dropped properties": "theirs raises CommitFailedException where commit_table is documented to raise NoSuchTableError",
    "table at the root": "theirs has none",
}
"""Calls with different results, and the reason."""


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_call(pair: Pair, name: str) -> None:
    theirs, ours = (seen(lambda catalog=catalog: CALLS[name](catalog)) for catalog in pair)
    assert (theirs == ours) is (name not in DIFFERENT), (theirs, ours)
