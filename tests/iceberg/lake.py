"""A warehouse folder, a repository, and PyIceberg's catalogs over them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from nessie_cli import connect, create
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import NO_ANCESTOR, ContentKey, IcebergTable, LogEntry, Put, ReferenceType
from nessie_cli.repository.base import Repository

IMPLEMENTATION = "nessie_cli.iceberg.catalog.NessieCatalog"
_numbers = itertools.count(1)

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


class Lake:
    """A store at a URL, a branch of its own in it, and a folder for tables."""

    def __init__(self, uri: str, folder: Path, stack: ExitStack) -> None:
        self.uri = uri
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self._stack = stack
        self.repository: Repository = stack.enter_context(connect(uri))
        self.branch = f"lake-{next(_numbers)}"
        self.repository.create_reference(ReferenceType.BRANCH, self.branch, NO_ANCESTOR)

    def options(self, ref: str | None = None, **others: str) -> dict[str, str]:
        """What `load_catalog` takes."""
        return {
            "py-catalog-impl": IMPLEMENTATION,
            "uri": self.uri,
            "warehouse": str(self.warehouse),
            "ref": ref or self.branch,
            **others,
        }

    def catalog(self, ref: str | None = None, **others: str) -> NessieCatalog:
        """A catalog on the branch, or on another reference."""
        catalog = load_catalog("lake", **self.options(ref, **others))
        assert isinstance(catalog, NessieCatalog)
        self._stack.callback(catalog.close)
        return catalog

    def content(self, *elements: str) -> IcebergTable:
        """The content of a table on the branch."""
        content = self.repository.content(self.branch, ContentKey(elements))
        assert isinstance(content, IcebergTable)
        return content

    def log(self, ref: str | None = None) -> list[LogEntry]:
        """The commits of the branch, newest first."""
        return list(self.repository.log(ref or self.branch, operations=True))

    def messages(self, ref: str | None = None) -> list[str]:
        """What the commits say, newest first."""
        return [entry.meta.message for entry in self.log(ref)]

    def head(self) -> str:
        return self.repository.reference(self.branch).hash

    def metadata_files(self) -> set[str]:
        """Those that are there."""
        return {str(path) for path in self.warehouse.rglob("*.metadata.json")}

    def committed_files(self) -> set[str]:
        """Those that commits of the branch name."""
        operations = [operation for entry in self.log() for operation in entry.operations or ()]
        return {
            op.content.metadata_location
            for op in operations
            if isinstance(op, Put) and isinstance(op.content, IcebergTable)
        }


@contextmanager
def lake_at(uri: str, folder: Path) -> Iterator[Lake]:
    with ExitStack() as stack:
        yield Lake(uri, folder, stack)


def new_store(folder: Path) -> str:
    """The URL of a new store in a folder."""
    path = str(folder / "catalog.sqlite")
    create(path).close()
    return path


def sorted_rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
