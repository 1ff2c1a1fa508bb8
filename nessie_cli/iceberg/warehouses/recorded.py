"""Whether a metadata file lies where the catalog expects it, without reading the file.

In a warehouse with `choose-locations = false`, a content that is put through Nessie's API names a
metadata file that the server has not read. Without the right to choose locations, the file must lie
in the folder that the catalog has recorded for this content, or that the server issued for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import dirname

from nessie_cli.iceberg.warehouses.locations import (
    Allowed,
    LocationRefused,
    issued_folder,
    issued_uuid,
)
from nessie_cli.iceberg.warehouses.tables import refuse_issued
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.model import IcebergTable, IcebergView

_METADATA = (".metadata.json", ".metadata.json.gz")
"""The endings of metadata files. Clients with delegated access cannot write such files."""


class RecordedLocations:
    """The warehouses in which callers need a right to choose locations."""

    def __init__(self, warehouses: Iterable[Warehouse]) -> None:
        self._guarded = [Allowed(one.allowed) for one in warehouses if not one.choose_locations]

    def __bool__(self) -> bool:
        """Returns whether there is such a warehouse."""
        return bool(self._guarded)

    def accept(
        self, content: IcebergTable | IcebergView, recorded: IcebergTable | IcebergView | None
    ) -> bool:
        """Returns whether a content may be put without the right to choose locations.

        `recorded` is the content of this id at HEAD; None for a new one. Costs no I/O except for
        looking at symbolic links.
        """
        location = content.metadata_location
        if not any(allowed.holds(location) for allowed in self._guarded):
            # The server refuses to read it in these warehouses.
            return True
        if recorded is not None and recorded.metadata_location == location:
            return True
        own = {content.id}
        folders = [issued_folder(location)] if issued_uuid(location) == content.id else []
        if recorded is not None:
            own.add(issued_uuid(recorded.metadata_location))
            folders.append(dirname(recorded.metadata_location))
        try:
            refuse_issued(location, own)
        except LocationRefused:
            return False
        return location.endswith(_METADATA) and any(_holds(folder, location) for folder in folders)


def _holds(folder: str, location: str) -> bool:
    """Returns whether all readings of a location lie in a folder."""
    try:
        return Allowed((folder,)).holds(location)
    except LocationRefused:
        return False
