"""Checks of the locations in the metadata of tables and views, and of namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import dirname
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import non_empty_text
from nessie_cli.iceberg.locations import (
    PATH_PROPERTIES,
    Allowed,
    LocationRefused,
    folder_for,
    issued_folder,
    issued_uuid,
    parse,
    refuse_issued,
)
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations, Warehouse
from nessie_cli.model import ContentKey, IcebergTable, IcebergView, Namespace

LOCATION = "location"


def namespace_location(warehouse: Warehouse, namespace: Namespace, key: ContentKey) -> str:
    """Returns the folder for the tables and views of a namespace.

    It is the property `location` or, without one, a folder for the namespace in the warehouse.
    """
    return namespace.properties.get(LOCATION) or folder_for(warehouse.location, key.elements)


def new_location(warehouse: Warehouse, namespace: Namespace, key: ContentKey, uuid: str) -> str:
    """Returns a location of its own for a new table or view of a namespace.

    It is `NAME_UUID` in the location of the namespace. Raises `LocationRefused` if that lies in the
    folder of another table: it is stored so, or the namespace is called like this folder.
    """
    assert key.parent is not None
    folder = namespace_location(warehouse, namespace, key.parent)
    location = f"{folder_for(folder, key.elements[-1:])}_{uuid}"
    refuse_issued(location, {uuid})
    return location


def check_table_locations(
    files: MetadataFiles, document: Mapping[str, Any], issued: str | None, *, may_choose: bool
) -> None:
    """Check each location in the metadata of a table or view.

    `issued` is the location that the table has, or that the server made for it just now. Without
    `may_choose` no other is accepted, and all paths have to lie in it. Another table's folder
    `NAME_UUID` is refused always. Raises `LocationRefused`, `InvalidInput`.
    """
    location = non_empty_text(document, LOCATION)
    files.check(location)
    own = parse(location).normal
    if issued is None:
        uuids = [document.get("table-uuid"), document.get("view-uuid")]
    else:
        # A client can choose the UUID in the metadata, but not the one in this location.
        uuids = [issued_uuid(parse(issued).normal)]
    if issued is None or own != parse(issued).normal:
        if not may_choose:
            raise LocationRefused(
                (
                    f"location {location}: the server did not issue it for this table, and the"
                    " caller may not choose locations"
                ),
                hint="create the table without a location",
            )
        refuse_issued(location, uuids)
    properties = document.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise InvalidInput("properties must be an object")
    for name in PATH_PROPERTIES:
        path = properties.get(name)
        if path is None:
            continue
        if not isinstance(path, str) or not path:
            raise InvalidInput(f"{name} must be a non-empty string")
        files.check(path)
        # The location can contain the folders of other tables.
        refuse_issued(path, uuids)
        if not may_choose and not Allowed((location,)).holds(path):
            raise LocationRefused(f"{name} {path} is outside of the table's location {location}")


class NewMetadata(NamedTuple):
    """The metadata `document` that follows `base`, for a file in the folder of `file`.

    `there` is the content that the branch records, whose metadata is `base`.
    """

    there: IcebergTable | IcebergView
    base: Mapping[str, Any]
    document: Mapping[str, Any]
    file: str


def check_new_metadata(
    files: MetadataFiles,
    recorded: RecordedLocations | None,
    new: NewMetadata,
    *,
    may_choose: bool,
) -> None:
    """Checks the locations in the next metadata of a table or view, and that of its file.

    A client of Nessie's API writes metadata files itself, so the last metadata can name any folder.
    For callers who may not choose locations, only the metadata file that the branch records decides
    which folder is the table's. Raises `LocationRefused`, `InvalidInput`.
    """
    there, base, document, file = new
    location = non_empty_text(base, LOCATION)
    if not may_choose:
        check_own_metadata(document[LOCATION], there.metadata_location)
        folder = table_folder(there.metadata_location)
        check_table_locations(files, document, folder, may_choose=False)
        if recorded is not None:
            recorded.check(there, file)
        return
    if _paths_of(document) != _paths_of(base):
        check_table_locations(files, document, location, may_choose=True)
    own = {issued_uuid(parse(text).normal) for text in (location, there.metadata_location)}
    refuse_issued(file, own)


def _paths_of(document: Mapping[str, Any]) -> list[Any]:
    """Returns the locations in metadata that a client can choose."""
    properties = document.get("properties") or {}
    return [document.get(LOCATION), *map(properties.get, PATH_PROPERTIES)]


def table_folder(metadata_location: str) -> str:
    """Returns the folder of the table or view to which a metadata file belongs.

    It is the folder that the server issued. Otherwise, it is that of the file, or if this is called
    `metadata`, the one above.
    """
    file = parse(metadata_location).normal
    return issued_folder(file) if issued_uuid(file) else dirname(file).removesuffix("/metadata")


def check_own_metadata(location: str, metadata_location: str) -> None:
    """Raises `LocationRefused` unless a location is the folder of the table of a metadata file.

    Otherwise, a caller could put another table's location into a file of his own, or one that
    contains other tables.
    """
    folder = table_folder(metadata_location)
    if parse(location).normal != folder or not Allowed((location,)).holds(metadata_location):
        raise LocationRefused(
            f"location {location}: the folder of the table is {folder}, because its metadata file"
            f" is {metadata_location}; the caller may not choose locations"
        )


def check_namespace_location(files: MetadataFiles, location: str) -> None:
    """Check the location of a namespace.

    Raises `LocationRefused` if it is not allowed or lies in a table's folder.
    """
    files.check(location)
    refuse_issued(location, set())
