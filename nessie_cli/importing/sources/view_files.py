"""Finds the metadata file of a view by its content: PyIceberg does not return its name."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from pyiceberg.view.metadata import ViewMetadata

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import MAX_BYTES, Files
from nessie_cli.iceberg.locations import METADATA_PATH
from nessie_cli.iceberg.metadata import unpacked
from nessie_cli.importing.sources.folders import entries_of


class ViewFiles:
    """The metadata files of views."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Takes the properties of PyIceberg's FileIO."""
        self._properties = properties
        self._files = Files(properties)

    def location_of(self, view: ViewMetadata) -> str | None:
        """Returns the metadata file with exactly this content, or None.

        Raises `InvalidInput` or `StoreUnavailable` if the folder cannot be read. Cost: one listing,
        and a read of each file until the one with the content, newest first by name.
        """
        folder = view.properties.get(METADATA_PATH) or f"{view.location.rstrip('/')}/metadata"
        names = [entry.name for entry in entries_of(folder, self._properties)]
        for name in sorted((name for name in names if ".metadata.json" in name), reverse=True):
            location = f"{folder.rstrip('/')}/{name}"
            if self._content(location) == view:
                return location
        return None

    def _content(self, location: str) -> ViewMetadata | None:
        try:
            text = unpacked(self._files.read(location), MAX_BYTES)
            return ViewMetadata.model_validate_json(text)
        except (InvalidInput, ValidationError):
            return None
