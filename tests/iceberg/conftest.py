"""Real Iceberg tables in a folder, written by PyIceberg through a small catalog of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import CommitTableResponse, Table

from tests.gc.s3 import Store, s3
from tests.iceberg.lake import Lake, lake_at, new_store
from tests.server.processes import started


class FolderCatalog(MetastoreCatalog, NoopCatalog):
    """Creates and changes tables below a warehouse; remembers the newest metadata file of each."""

    def __init__(self, warehouse: Path | str) -> None:
        super().__init__("folder", warehouse=str(warehouse))
        self.newest: dict[tuple[str, ...], str] = {}

    def load_namespace_properties(self, namespace: Any) -> dict[str, str]:  # noqa: ARG002 - PyIceberg's signature
        return {}

    def create_table(self, identifier: Any, schema: Any, *args: Any, **kwargs: Any) -> Table:
        staged = self._create_staged_table(identifier, schema, *args, **kwargs)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.newest[staged.name()] = staged.metadata_location
        return self.load_table(staged.name())

    def load_table(self, identifier: Any) -> Table:
        from pyiceberg.serializers import FromInputFile

        name = self.identifier_to_tuple(identifier)
        location = self.newest[name]
        file_io = self._load_file_io(location=location)
        return Table(
            name, FromInputFile.table_metadata(file_io.new_input(location)), location, file_io, self
        )

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        staged = self._update_and_stage_table(
            self.load_table(table.name()), table.name(), requirements, updates
        )
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.newest[table.name()] = staged.metadata_location
        return CommitTableResponse(
            metadata=staged.metadata, metadata_location=staged.metadata_location
        )


@pytest.fixture
def folder_catalog() -> Callable[[Path | str], FolderCatalog]:
    return FolderCatalog


@pytest.fixture
def rows() -> pa.Table:
    return pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server over a new store."""
    with started("--store", new_store(tmp_path_factory.mktemp("served"))) as (_, url):
        yield f"{url}/api/v2"


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Lake]:
    """A lake over a store in a file."""
    with lake_at(new_store(tmp_path), tmp_path) as found:
        yield found


@pytest.fixture(params=["embedded", "served"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A lake over a store in a file, and one over a server."""
    uri = new_store(tmp_path) if request.param == "embedded" else request.getfixturevalue("served")
    with lake_at(uri, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A server for S3 with a bucket."""
    with s3() as running:
        yield running
