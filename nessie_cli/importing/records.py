"""The records of imports: which tables of this repository another catalog may still write.

Each source has one setting of the repository, `import.NAME`, with a row for each table. A row is
written before the table is committed, so garbage collection never sees the table without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nessie_cli.model import ContentKey
from nessie_cli.repository.base import Repository


class ImportedTable(Struct, frozen=True):
    """A table or view that was imported.

    `name` is its name in the source, `key` the key that it was imported under, `location` the
    folder of its files, `source_metadata` the metadata file of the source, and `metadata` the one
    that was committed here: the same one, or a copy with other properties. `adopted` says that no
    other catalog writes it.
    """

    name: tuple[str, ...]
    key: ContentKey
    location: str
    source_metadata: str
    metadata: str
    adopted: bool = False


class ImportRecord(Struct, frozen=True):
    """The imports from one source: its name in this repository, and what messages call it."""

    name: str
    source: str
    tables: Sequence[ImportedTable] = ()


class ImportRecords:
    """The records of a repository. Each method reads its settings once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def all(self) -> list[ImportRecord]:
        """Returns the records of all sources. Raises `InvalidInput` for a damaged one."""
        raise NotImplementedError

    def get(self, name: str) -> ImportRecord | None:
        """Returns the record of a source, or None."""
        raise NotImplementedError

    def put(self, name: str, source: str, tables: Sequence[ImportedTable]) -> None:
        """Adds rows to the record of a source, or replaces those with the same name.

        Rows that another process adds meanwhile are kept. Raises `NotAllowed`, and `InvalidInput`
        on a server that has no settings.
        """
        raise NotImplementedError

    def adopt(self, keys: Sequence[ContentKey]) -> list[ImportedTable]:
        """Marks tables as adopted, and returns them. Raises `NotFound` for a key of none."""
        raise NotImplementedError

    def foreign_locations(self) -> dict[str, str]:
        """Returns the locations of tables that are not adopted, each with its source's label."""
        raise NotImplementedError
