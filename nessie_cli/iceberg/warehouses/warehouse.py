"""Warehouses, and the locations that tables, views and their metadata may have in them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from posixpath import dirname
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.iceberg.builder.values import non_empty_text
from nessie_cli.iceberg.locations import (
    PATH_PROPERTIES,
    Allowed,
    Base,
    LocationRefused,
    folder_for,
    issued_folder,
    issued_uuid,
    parse,
    readings,
    refuse_issued,
    scheme_of,
)
from nessie_cli.model import ContentKey, IcebergTable, IcebergView, Namespace, Secret

VENDED_CREDENTIALS = "vended-credentials"
REMOTE_SIGNING = "remote-signing"
DELEGATIONS = (VENDED_CREDENTIALS, REMOTE_SIGNING)

_METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")
"""The endings of metadata files. Clients with delegated access cannot write such files."""
SHORTEST_SECRET = 32
LOCATION = "location"
"""The member of metadata and the property of a namespace with its location."""


class UnknownWarehouse(NotFound):
    """No warehouse has this name."""


class Vending(Struct, frozen=True, kw_only=True):
    """How the server gets temporary credentials for clients from STS."""

    role_arn: str
    external_id: str = ""
    sts_endpoint: str = ""
    seconds: int = 3600


class Warehouse(Struct, frozen=True, kw_only=True):
    """A place for tables.

    `allowed` are the allowed locations, the warehouse's own first. `storage` holds the server's own
    settings of FileIO, `client_config` those for clients. If `choose_locations` is false, callers
    need a right to choose the location of a table and to register one. If `delete_files` is false,
    clients with delegated access cannot delete files.
    """

    name: str
    location: str
    allowed: tuple[str, ...]
    storage: Mapping[str, str] = {}
    client_config: Mapping[str, str] = {}
    delegation: frozenset[str] = frozenset()
    vending: Vending | None = None
    choose_locations: bool = True
    delete_files: bool = False

    def __repr__(self) -> str:
        """Without the settings, which may be secret."""
        return f"Warehouse({self.name!r}, {self.location!r})"

    @property
    def is_s3(self) -> bool:
        """Whether its files lie in S3."""
        return scheme_of(self.location) in ("s3", "s3a", "s3n")


class Warehouses:
    """The warehouses of a server.

    The first one is the default. `secret` authenticates what the server issues.
    """

    def __init__(self, warehouses: Iterable[Warehouse], secret: Secret | None = None) -> None:
        self._by_name = {warehouse.name: warehouse for warehouse in warehouses}
        if not self._by_name:
            raise InvalidInput("there is no warehouse")
        _check_places(self.all)
        self.secret = secret or Secret(secrets.token_urlsafe(SHORTEST_SECRET))
        """Random unless configured: servers that answer for one catalog have to share it."""

    @property
    def all(self) -> tuple[Warehouse, ...]:
        """All of them, the default first."""
        return tuple(self._by_name.values())

    def named(self, name: str | None) -> Warehouse:
        """Returns the warehouse of a name or location; the default for None or an empty text.

        Raises `UnknownWarehouse`.
        """
        if not name:
            return self.all[0]
        warehouse = self._by_name.get(name) or next(
            (warehouse for warehouse in self.all if warehouse.location == name.rstrip("/")), None
        )
        if warehouse is None:
            raise UnknownWarehouse(
                f"there is no warehouse '{name}'. Warehouses: {', '.join(self._by_name)}", name
            )
        return warehouse


# -- the locations of tables and views -------------------------------------------------------------


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
    allowed: Allowed, document: Mapping[str, Any], issued: str | None, *, may_choose: bool
) -> None:
    """Check each location in the metadata of a table or view.

    `issued` is the location that the table has, or that the server made for it just now. Without
    `may_choose` no other is accepted, and all paths have to lie in it. Another table's folder
    `NAME_UUID` is refused always. Raises `LocationRefused`, `InvalidInput`.
    """
    location = non_empty_text(document, LOCATION)
    allowed.find(location)
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
        allowed.find(path)
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
    allowed: Allowed,
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
        check_table_locations(allowed, document, folder, may_choose=False)
        if recorded is not None:
            recorded.check(there, file)
        return
    if _paths_of(document) != _paths_of(base):
        check_table_locations(allowed, document, location, may_choose=True)
    own = {issued_uuid(parse(text).normal) for text in (location, there.metadata_location)}
    refuse_issued(file, own)


def _paths_of(document: Mapping[str, Any]) -> list[Any]:
    """Returns the locations in metadata that a client can choose."""
    properties = document.get("properties") or {}
    return [document.get(LOCATION), *map(properties.get, PATH_PROPERTIES)]


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


def check_namespace_location(allowed: Allowed, location: str) -> None:
    """Check the location of a namespace.

    Raises `LocationRefused` if it is not allowed or lies in a table's folder.
    """
    allowed.find(location)
    refuse_issued(location, set())


def table_folder(metadata_location: str) -> str:
    """Returns the folder of the table or view to which a metadata file belongs.

    It is the folder that the server issued. Otherwise, it is that of the file, or if this is called
    `metadata`, the one above.
    """
    file = parse(metadata_location).normal
    return issued_folder(file) if issued_uuid(file) else dirname(file).removesuffix("/metadata")


# -- the right to choose locations -----------------------------------------------------------------


def _check_places(warehouses: Sequence[Warehouse]) -> None:
    """Refuses a warehouse in the folder of a table, and two of which one guards a place of both.

    Nothing could be created in the first one, and callers could choose locations through the other
    one of two. Raises `InvalidInput`.
    """
    for warehouse in warehouses:
        if issued_uuid(parse(warehouse.location).normal) is not None:
            raise InvalidInput(
                f"warehouse '{warehouse.name}': {warehouse.location} is in a folder whose name ends"
                " in _UUID, which counts as the folder of a table",
                hint="choose another folder",
            )
    for guarded, other in permutations(warehouses, 2):
        if not guarded.choose_locations and other.choose_locations and _overlap(guarded, other):
            raise InvalidInput(
                f"warehouses '{guarded.name}' and '{other.name}' have a location in common, and"
                f" only '{guarded.name}' restricts callers to issued locations",
                hint=f"set choose-locations = false for '{other.name}', too",
            )


def _overlap(first: Warehouse, second: Warehouse) -> bool:
    return any(
        Allowed(outer.allowed).holds(location)
        for outer, inner in ((first, second), (second, first))
        for location in inner.allowed
    )


class RecordedLocations:
    """The warehouses in which callers need a right to choose locations.

    There, a content that is put through Nessie's API names a metadata file that the server has not
    read. Without that right, the file must lie in the folder that the catalog has recorded for this
    content, or that the server issued for it.
    """

    def __init__(self, warehouses: Iterable[Warehouse]) -> None:
        guarded = [warehouse for warehouse in warehouses if not warehouse.choose_locations]
        self._guarded = [Allowed(warehouse.allowed) for warehouse in guarded]
        self._bases = {
            place.normal
            for warehouse in guarded
            for location in warehouse.allowed
            for place in Base.of(location)
        }

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
        if not self.guards(location):
            # The server refuses to read it in these warehouses.
            return True
        before = recorded.metadata_location if recorded is not None else None
        if before == location:
            return True
        own = {content.id}
        is_own = issued_uuid(location) == content.id and _holds(issued_folder(location), location)
        if before is not None and self.guards(before):
            # A file elsewhere was recorded without a check, so its name and folder mean nothing.
            own.add(issued_uuid(before))
            is_own = is_own or self._is_beside(location, before)
        try:
            refuse_issued(location, own)
        except LocationRefused:
            return False
        return is_own and location.endswith(_METADATA_ENDINGS)

    def check(self, recorded: IcebergTable | IcebergView, location: str) -> None:
        """Raises `LocationRefused` for a new metadata file outside of the recorded folder."""
        if not self.accept(replace(recorded, metadata_location=location), recorded):
            folder = dirname(recorded.metadata_location)
            raise LocationRefused(
                f"metadata file {location}: the last one is in {folder}, and the caller may not"
                " choose locations",
                hint=f"set write.metadata.path to {folder}",
            )

    def guards(self, location: str) -> bool:
        """Returns whether a location lies in one of the warehouses."""
        return any(allowed.holds(location) for allowed in self._guarded)

    def _is_beside(self, location: str, recorded: str) -> bool:
        """Returns whether a file is in the folder of a recorded one, and no warehouse is there.

        Folders below do not count: they can be those of other tables.
        """
        folder = dirname(recorded)
        return is_in(folder, location) and not any(_holds(folder, base) for base in self._bases)


def _holds(folder: str, location: str) -> bool:
    """Returns whether all readings of a location lie in a folder."""
    try:
        return Allowed((folder,)).holds(location)
    except LocationRefused:
        return False


def is_in(folder: str, location: str, *, directly: bool = True) -> bool:
    """Returns whether all readings of a file's location are in a folder, `directly` or below it."""
    place = parse(location)
    try:
        allowed = Allowed((folder,))
        ways = [allowed.find(place._replace(path=path).normal) for path in readings(place.path)]
    except LocationRefused:
        return False
    return not directly or all(dirname(file.path) == base.resolved.path for file, base in ways)
