"""Listings of real metadata files, for tests of plans and imports without a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog

from nessie_cli.importing.source import Listing, SourceContent, SourceKind, SourceNamespace
from nessie_cli.importing.sources.names import parents

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


class MadeTables:
    """Metadata files of tables below a folder; a listing can name each of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._catalog = InMemoryCatalog("made", warehouse=f"file://{folder}")

    def table(self, name: str, properties: Mapping[str, str] | None = None) -> Path:
        """Creates a table and returns its metadata file."""
        identifier = tuple(name.split("."))
        self._catalog.create_namespace_if_not_exists(identifier[:-1])
        table = self._catalog.create_table(identifier, SCHEMA, properties=dict(properties or {}))
        return self._path(table.metadata_location)

    def append(self, name: str, id_: int = 1) -> Path:
        """Appends a row and returns the new metadata file."""
        table = self._catalog.load_table(tuple(name.split(".")))
        table.append(pa.table({"id": [id_], "v": ["x"]}))
        return self._path(table.metadata_location)

    def view(self, name: str, version: int = 1, **properties: str) -> Path:
        """Writes the metadata of a view."""
        folder = self.folder / name.replace(".", "/") / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{version:05}-0.metadata.json"
        versions = [
            {
                "version-id": number,
                "schema-id": 0,
                "timestamp-ms": number,
                "summary": {},
                "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
                "default-namespace": ["db"],
            }
            for number in range(1, version + 1)
        ]
        document = {
            "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
            "format-version": 1,
            "location": f"file://{folder.parent}",
            "current-version-id": version,
            "properties": properties,
            "versions": versions,
            "version-log": [
                {"timestamp-ms": number, "version-id": number} for number in range(1, version + 1)
            ],
            "schemas": [{"schema-id": 0, "type": "struct", "fields": []}],
        }
        path.write_bytes(msgspec.json.encode(document))
        return path

    @staticmethod
    def _path(location: str) -> Path:
        return Path(location.removeprefix("file://"))

    def copies(self) -> set[Path]:
        return {path for path in self.folder.rglob(".nessie-import-*") if path.is_file()}


def listing(
    files: Mapping[str, Path], views: Mapping[str, Path] | None = None, **more: Any
) -> Listing:
    """The listing of a source that has these tables and views, with their namespaces."""
    contents = [
        SourceContent(tuple(name.split(".")), kind, f"file://{path}")
        for kind, part in ((SourceKind.TABLE, files), (SourceKind.VIEW, views or {}))
        for name, path in part.items()
    ]
    names = parents([each.name for each in contents])
    return Listing([SourceNamespace(name) for name in names], contents, **more)
