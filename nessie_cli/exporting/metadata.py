"""The metadata files of exported tables: checked, and written for states that have none.

A metadata file holds many states of a table, and the content says which one is current. Another
catalog only has the file, so a content in another state than its file needs a file of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec
from msgspec import Struct, structs
from pyiceberg.table.metadata import TableMetadataUtil

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files, MissingFile, first_line
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.metadata import in_state, parse_document
from nessie_cli.model import IcebergTable, IcebergView

_NAMESPACE = uuid.UUID("7b1d3c52-6f0e-4a8e-9b7c-0d5a4f5f8e21")


class ExportFile(Struct, frozen=True):
    """The content that is registered, and the bytes of its metadata file if it is a new one."""

    content: IcebergTable | IcebergView
    data: bytes | None = None


def own_file(table: IcebergTable) -> IcebergTable:
    """Returns a table with a metadata file of its own. Equal tables have equal files.

    The name has no number, so no reader of a folder takes it for a newer version.
    """
    state = (
        table.metadata_location,
        table.snapshot_id,
        table.schema_id,
        table.spec_id,
        table.sort_order_id,
        table.id,
    )
    name = uuid.uuid5(_NAMESPACE, "\n".join(map(str, state)))
    folder = table.metadata_location.rpartition("/")[0]
    return structs.replace(table, metadata_location=f"{folder}/exported-{name}.metadata.json")


def file_of(content: IcebergTable | IcebergView, files: Files) -> ExportFile:
    """Reads and checks the metadata file of a content.

    Raises `InvalidInput` if the file is missing or refused, and `StoreUnavailable`.
    """
    location = content.metadata_location
    document = parse_document(files.read(location), location)
    if isinstance(content, IcebergView):
        if document.get("current-version-id") != content.version_id:
            raise InvalidInput(
                f"{shown(location)}: version {content.version_id} of the view is not the current"
                " one in its metadata file"
            )
        return ExportFile(content)
    current = in_state(document, content)
    try:
        TableMetadataUtil.parse_obj(dict(current))
    except ValueError as error:
        raise InvalidInput(f"{shown(location)}: {first_line(error)}") from None
    if current == document:
        return ExportFile(content)
    return ExportFile(own_file(content), msgspec.json.encode(current))


def write_files(exported: Mapping[str, bytes], files: Files) -> None:
    """Writes metadata files by location. Keeps those that an interrupted export has written."""
    for location, data in exported.items():
        try:
            if files.read(location) == data:
                continue
            # Its writer was stopped.
            files.remove(location)
        except MissingFile:
            pass
        files.write(location, data)
