"""A lake of real tables for tests of the command line: two branches change one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import ReferenceType
from nessie_cli.repository.opening import connect

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())]
)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": ["x"] * len(ids), "n": [1] * len(ids)}, schema=SCHEMA)


class Lake:
    """A store with the table `db.t` of three rows on main, and a branch dev.

    `key` are the identifier fields of the table.
    """

    def __init__(self, store: str, folder: Path, *key: str) -> None:
        self._store, self.folder = store, folder / "lake"
        with self.catalog("main") as catalog:
            catalog.create_namespace("db")
            with catalog.create_table_transaction("db.t", rows(1).schema) as transaction:
                if key:
                    with transaction.update_schema() as update:
                        update.set_identifier_fields(*key)
                transaction.append(rows(1, 2, 3))
        with connect(store) as repository:
            head = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, "dev", head)

    @contextmanager
    def catalog(self, ref: str) -> Iterator[NessieCatalog]:
        opened = NessieCatalog(
            "lake", uri=self._store, warehouse=str(self.folder), ref=ref, author="etl"
        )
        with closing(opened):
            yield opened

    def append(self, ref: str, *ids: int) -> None:
        with self.table(ref) as table:
            table.append(rows(*ids))

    def delete(self, ref: str, id_: int) -> None:
        with self.table(ref) as table:
            table.delete(f"id == {id_}")

    @contextmanager
    def table(self, ref: str) -> Iterator[Table]:
        with self.catalog(ref) as catalog:
            yield catalog.load_table("db.t")

    def ids(self, ref: str) -> list[int]:
        with self.table(ref) as table:
            return sorted(row["id"] for row in table.scan().to_arrow().to_pylist())

    def files(self) -> set[Path]:
        return set(self.folder.rglob("*.*"))

    def data_files(self) -> set[Path]:
        return set(self.folder.rglob("*.parquet"))
