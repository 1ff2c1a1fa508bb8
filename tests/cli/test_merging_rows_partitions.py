"""`--rows` on partitioned tables: queries of a partition find its merged rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField, StringType

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.repository.opening import create
from tests.command.in_process import InProcess

Rows = list[tuple[int, str | int, str]]
STRING = StringType()


class Places:
    """A table on main and dev that is partitioned by its second column."""

    def __init__(self, folder: Path, column: str, type_: IcebergType = STRING) -> None:
        self._store, self._warehouse = str(folder / "places.sqlite"), str(folder / "places")
        create(self._store).close()
        self._schema = Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, column, type_),
            NestedField(3, "v", StringType()),
            identifier_field_ids=[1],
        )
        self.column = column
        with self.catalog("main") as catalog:
            catalog.create_namespace("db")
            spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), column))
            catalog.create_table("db.t", self._schema, partition_spec=spec)

    def catalog(self, ref: str) -> closing[NessieCatalog]:
        opened = NessieCatalog(
            "lake", uri=self._store, warehouse=self._warehouse, ref=ref, author="etl"
        )
        return closing(opened)

    def write(self, ref: str, rows: Rows) -> None:
        with self.catalog(ref) as catalog:
            table = catalog.load_table("db.t")
            schema = table.schema().as_arrow()
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            write = table.overwrite if table.current_snapshot() else table.append
            write(pa.table(columns, schema=schema))

    def widen(self, ref: str) -> None:
        with self.catalog(ref) as catalog:
            table = catalog.load_table("db.t")
            with table.update_schema() as update:
                update.update_column(self.column, LongType())

    def rows(self, table: Table, place: str) -> Rows:
        # PyIceberg reads a dot in the name of a column as that of a nested one.
        is_nested = "." in self.column
        here = EqualTo(self.column, place)  # type: ignore[call-arg, arg-type]
        scan = table.scan() if is_nested else table.scan(row_filter=here)
        rows = scan.to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in rows if row[self.column] == place)


@pytest.mark.parametrize("column", ["place", "größe x", "a.b"])
def test_merged_rows_are_in_their_partitions(
    nessie: InProcess, tmp_path: Path, column: str
) -> None:
    places = Places(tmp_path, column)
    store = ("--store", str(tmp_path / "places.sqlite"))
    places.write("main", [(1, "a", "x"), (2, "a", "x"), (3, "a", "x")])
    nessie(*store, "branch", "dev", "main").expect(0)
    places.write("main", [(1, "a", "ours"), (2, "a", "x"), (3, "a", "x")])
    # Row 3 moves to a partition that ours has no file of.
    places.write("dev", [(1, "a", "x"), (2, "a", "theirs"), (3, "b", "x")])
    ran = nessie(*store, "merge", "dev", "--rows")
    assert ran.code == 0, ran.err
    assert "rows were merged by their keys: 0 inserted, 2 updated" in ran.err
    with places.catalog("main") as catalog:
        table = catalog.load_table("db.t")
        assert places.rows(table, "a") == [(1, "a", "ours"), (2, "a", "theirs")]
        assert places.rows(table, "b") == [(3, "b", "x")]
        # Spark's tables of manifests need summaries.
        summaries = table.inspect.manifests()["partition_summaries"].to_pylist()
        assert {row[0]["upper_bound"] for row in summaries} == {"a", "b"}


def test_a_partition_that_its_manifests_cannot_name(nessie: InProcess, tmp_path: Path) -> None:
    places = Places(tmp_path, "place", IntegerType())
    store = ("--store", str(tmp_path / "places.sqlite"))
    places.write("main", [(1, 1, "x"), (2, 1, "x")])
    nessie(*store, "branch", "dev", "main").expect(0)
    places.write("main", [(1, 1, "ours"), (2, 1, "x")])
    places.widen("dev")
    places.write("dev", [(1, 1, "x"), (2, 2**40, "x")])
    before = set(tmp_path.rglob("*.parquet"))
    nessie(*store, "merge", "dev", "--rows").expect(3, "the type of its column may have changed")
    assert set(tmp_path.rglob("*.parquet")) == before
