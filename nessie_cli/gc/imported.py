"""The locations of imported tables that another catalog may still write.

No file there is collected until the table is adopted: the other catalog may need a file that no
commit of this repository has.
"""

from __future__ import annotations

import re

from nessie_cli.errors import InvalidInput
from nessie_cli.gc.run import ImportedLocation
from nessie_cli.iceberg.locations import normalised
from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.repository.base import Repository


def imported_locations(repository: Repository) -> tuple[ImportedLocation, ...]:
    """Returns the locations of tables that are not adopted, sorted.

    Raises `InvalidInput` for a damaged record of an import, and `NotAllowed` if the caller may not
    read the records.
    """
    return tuple(
        sorted(
            ImportedLocation(_normal(table), str(table.key), source)
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
