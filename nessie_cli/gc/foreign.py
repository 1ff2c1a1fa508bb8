"""The locations of tables that another catalog may write: imported and exported ones.

No file there is collected until the other catalog no longer has the table: it may need a file that
no commit of this repository has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from nessie_cli.errors import InvalidInput
from nessie_cli.exporting.state import export_references
from nessie_cli.gc.run import ForeignKind, ForeignLocation
from nessie_cli.gc.table_files import bases_of, check_answer
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised, probable_location
from nessie_cli.iceberg.reachable import BrokenFile, read_table
from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.model import IcebergTable, IcebergView, Reference
from nessie_cli.repository.base import Repository

_AT_ONCE = 8
"""Metadata files that are read at the same time."""


class ForeignTables:
    """The locations of a repository that other catalogs may write, read again by each call.

    `properties` are those of PyIceberg's FileIO.
    """

    def __init__(self, repository: Repository, properties: Mapping[str, str]) -> None:
        self._repository = repository
        self._files = Files(properties)
        self._exported: dict[str, list[tuple[str, str]]] = {}
        """Locations and keys by the commit of an export."""
        self._bases: dict[str, list[str]] = {}
        """Locations by metadata file."""

    def locations(self) -> tuple[ForeignLocation, ...]:
        """Returns the locations of exported tables, and of imported ones that are not adopted.

        Raises `InvalidInput` for a damaged record of an import, `NotAllowed` if the caller may not
        read these records, and `StoreUnavailable`. Cost: a request for the settings and one for
        the references; for each export that is new or has moved since the last call, its entries
        and each metadata file that was not read before.
        """
        return (*imported_locations(self._repository), *self._exported_locations())

    def _exported_locations(self) -> tuple[ForeignLocation, ...]:
        current: dict[str, list[tuple[str, str]]] = {}
        references: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        for catalog, reference in export_references(self._repository):
            places = self._exported.get(reference.hash) or self._places(reference)
            current[reference.hash] = places
            for location, key in dict.fromkeys(places):
                references[location, key, catalog].append(reference.name)
        self._exported = current
        return tuple(
            ForeignLocation(*place, ForeignKind.EXPORTED, tuple(names))
            for place, names in sorted(references.items())
        )

    def _places(self, reference: Reference) -> list[tuple[str, str]]:
        tables = [
            (str(entry.key), entry.content.metadata_location)
            for entry in self._repository.entries(f"@{reference.hash}", content=True)
            if isinstance(entry.content, IcebergTable | IcebergView)
        ]
        new = sorted({file for _, file in tables} - self._bases.keys())
        with ThreadPoolExecutor(_AT_ONCE, "exported") as pool:
            self._bases.update(zip(new, pool.map(self._read, new), strict=True))
        return [(base, key) for key, file in tables for base in self._bases[file]]

    def _read(self, file: str) -> list[str]:
        try:
            return bases_of(read_table(self._files, file), file)
        except BrokenFile as error:
            check_answer(self._files, error)
            # The mark protects the other known locations of a content that cannot be read.
            return [probable_location(file)]


def imported_locations(repository: Repository) -> tuple[ForeignLocation, ...]:
    """Returns the locations of imported tables that are not adopted, sorted.

    Raises `InvalidInput` for a damaged record of an import, and `NotAllowed` if the caller may not
    read the records.
    """
    return tuple(
        sorted(
            ForeignLocation(_normal(table), str(table.key), source, ForeignKind.IMPORTED)
            for source, table in ImportRecords(repository).foreign_tables()
        )
    )


def _normal(table: ImportedTable) -> str:
    """Returns the normal form of a table's location, or that of a folder which contains it."""
    location = table.location
    try:
        return normalised(location)
    except InvalidInput as error:
        beginning = re.split("[?#]", location)[0]
        if beginning == location:
            raise InvalidInput(f"imported table {table.key}: {error.message}") from None
        return normalised(beginning.rpartition("/")[0])
