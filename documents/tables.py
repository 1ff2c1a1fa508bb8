"""Writes real Iceberg tables into folders, without a catalog.

The caller keeps track of the newest metadata file.

tables.py create FOLDER COLUMN...      creates a table; prints its metadata file
tables.py append METADATA_FILE ROW...  adds rows (values separated by commas); prints the new file
tables.py reload METADATA_FILE ROW...  replaces all rows; prints the new metadata file
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table


class Folders(MetastoreCatalog, NoopCatalog):
    """A PyIceberg catalog that only writes the next metadata file of a table."""

    def __init__(self) -> None:
        super().__init__("folders")

    def make(self, folder: Path, schema: pa.Schema) -> Table:
        """Writes the first metadata file of a table below a folder."""
        staged = self._create_staged_table((folder.parent.name, folder.name), schema, str(folder))
        # PyIceberg takes this time from a clock that a session does not repeat.
        now = int(time.time() * 1000)
        metadata = staged.metadata.model_copy(update={"last_updated_ms": now})
        self._write_metadata(metadata, staged.io, staged.metadata_location)
        return self.open(staged.metadata_location)

    def open(self, metadata_file: str) -> Table:
        """Returns the table in the state of a metadata file."""
        name = Path(metadata_file).parent.parent
        file_io = self._load_file_io(location=metadata_file)
        metadata = FromInputFile.table_metadata(file_io.new_input(metadata_file))
        return Table((name.parent.name, name.name), metadata, metadata_file, file_io, self)

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Writes the next metadata file beside the current one; no catalog is updated."""
        staged = self._update_and_stage_table(table, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        return CommitTableResponse(
            metadata=staged.metadata, metadata_location=staged.metadata_location
        )  # type: ignore[call-arg]


def create(folder: str, *columns: str) -> str:
    """Creates a table with text columns."""
    schema = pa.schema([(column, pa.string()) for column in columns])
    return Folders().make(Path(folder).absolute(), schema).metadata_location


def append(metadata_file: str, *rows: str) -> str:
    """Adds rows to the state that a metadata file describes."""
    table = Folders().open(str(Path(metadata_file).absolute()))
    table.append(_rows(table, rows))
    return table.metadata_location


def reload(metadata_file: str, *rows: str) -> str:
    """Replaces the rows of the state that a metadata file describes."""
    table = Folders().open(str(Path(metadata_file).absolute()))
    table.overwrite(_rows(table, rows))
    return table.metadata_location


def _rows(table: Table, rows: tuple[str, ...]) -> pa.Table:
    names = [field.name for field in table.schema().fields]
    return pa.Table.from_pylist([dict(zip(names, row.split(","), strict=True)) for row in rows])


if __name__ == "__main__":
    print({"create": create, "append": append, "reload": reload}[sys.argv[1]](*sys.argv[2:]))
