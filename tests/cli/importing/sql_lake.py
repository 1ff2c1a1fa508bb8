"""A lake that others made: tables in PyIceberg's SQL catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": ["x"] * len(ids)}, schema=SCHEMA)


class SqlLake:
    """The catalog and the files of a lake below a folder."""

    def __init__(self, folder: Path, name: str = "theirs") -> None:
        folder.mkdir(exist_ok=True)
        self._name = name
        self.folder = folder / "wh"
        self.uri = f"sqlite:///{folder}/catalog.db"
        with self.catalog() as catalog:
            catalog.create_tables()

    @contextmanager
    def catalog(self) -> Iterator[SqlCatalog]:
        catalog = SqlCatalog(self._name, uri=self.uri, warehouse=f"file://{self.folder}")
        with closing(catalog):
            yield catalog

    def create(self, *names: str, properties: dict[str, str] | None = None) -> None:
        """Creates tables with one row, and their namespaces with the property `owner`."""
        with self.catalog() as catalog:
            for name in names:
                namespace = tuple(name.split(".")[:-1])
                if not catalog.namespace_exists(namespace):
                    catalog.create_namespace(namespace, {"owner": "ann"})
                catalog.create_table(name, SCHEMA, properties=properties or {}).append(rows(1))

    def append(self, name: str, *ids: int) -> None:
        with self.catalog() as catalog:
            catalog.load_table(name).append(rows(*ids))

    def table(self, name: str) -> Table:
        with self.catalog() as catalog:
            return catalog.load_table(name)

    def metadata(self, name: str) -> Path:
        """The file of the current metadata of a table."""
        return Path(self.table(name).metadata_location.removeprefix("file://"))

    def ids(self, name: str) -> list[int]:
        return sorted(self.table(name).scan().to_arrow()["id"].to_pylist())

    def register(self, name: str, metadata: Path | str) -> None:
        """Gives a metadata file a second name, without reading it."""
        from sqlalchemy import text

        with self.catalog() as catalog, catalog.engine.begin() as connection:
            namespace, _, table = name.rpartition(".")
            connection.execute(
                text(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                    " metadata_location, iceberg_type)"
                    " VALUES (:catalog, :namespace, :name, :location, 'TABLE')"
                ),
                {
                    "catalog": self._name,
                    "namespace": namespace,
                    "name": table,
                    "location": f"{metadata}",
                },
            )

    def files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*") if path.is_file()}

    def copies(self) -> set[Path]:
        """The metadata files that imports wrote."""
        return {path for path in self.files() if path.name.startswith(".nessie-import-")}


def document(path: Path | str) -> dict[str, Any]:
    """The JSON of a metadata file."""
    text = str(path).removeprefix("file://")
    read: dict[str, Any] = json.loads(Path(text).read_bytes())
    return read


def elements(document: Sequence[dict[str, Any]]) -> list[str]:
    """The keys of JSON entries, in the order of the entries."""
    return [".".join(entry["key"]["elements"]) for entry in document]
