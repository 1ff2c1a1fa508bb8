"""Warehouses, configured by options of the command or by a TOML file."""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from posixpath import dirname
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.iceberg.locations import (
    Allowed,
    Base,
    LocationRefused,
    issued_folder,
    issued_uuid,
    parse,
    readings,
    refuse_issued,
    scheme_of,
)
from nessie_cli.model import IcebergTable, IcebergView, Secret

VENDED_CREDENTIALS = "vended-credentials"
REMOTE_SIGNING = "remote-signing"
DELEGATIONS = (VENDED_CREDENTIALS, REMOTE_SIGNING)
DEFAULT_NAME = "warehouse"

_METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")
"""The endings of metadata files. Clients with delegated access cannot write such files."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)
_SECRET = re.compile(r"secret|token|password|credential|access-key|account-key|connection-string")
_SHORTEST_SECRET = 32
_FOR_CLIENTS = (
    "s3.endpoint",
    "s3.region",
    "s3.path-style-access",
    "s3.force-virtual-addressing",
    "client.region",
)
"""Settings of the server that clients receive too, unless the file has others for them."""
_OPEN_SETTINGS = frozenset(
    {*_FOR_CLIENTS, "s3.connect-timeout", "s3.request-timeout", "s3.role-arn", "client.role-arn"}
)
"""Settings of the server that are not secret."""


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
        self.secret = secret or Secret(secrets.token_urlsafe(_SHORTEST_SECRET))
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


# -- options of the command ------------------------------------------------------------------------


def from_options(uris: Iterable[str], allowed: Iterable[str] = ()) -> Warehouses:
    """Returns the warehouses of options `[NAME=]URI`.

    Each allows its own location and those of `allowed`. Raises `InvalidInput`.
    """
    more = tuple(_location(uri, "--allow-location") for uri in allowed)
    by_name: dict[str, Warehouse] = {}
    for text in uris:
        named = _NAMED.fullmatch(text)
        name, uri = (named[1], named[2]) if named else (DEFAULT_NAME, text)
        if name in by_name:
            raise InvalidInput(
                f"--warehouse {text}: there are two warehouses '{name}'",
                hint="" if named else "write --warehouse NAME=URI to name each of them",
            )
        _check_name(name, f"--warehouse {text}")
        location = _location(uri, "--warehouse")
        by_name[name] = Warehouse(name=name, location=location, allowed=(location, *more))
    return Warehouses(by_name.values())


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{where}: the name of a warehouse has letters, digits, '.', '_' and '-', at most 64"
        )


def _location(uri: str, where: str) -> str:
    """A location without a slash at its end, a plain path as an absolute `file:` URI.

    Raises `InvalidInput`.
    """
    if not uri.strip():
        raise InvalidInput(f"{where}: the location is empty")
    # Path.resolve would follow links: clients would see another location than was configured.
    text = uri if scheme_of(uri) else f"file://{os.path.abspath(uri)}"  # noqa: PTH100
    try:
        Allowed((text,))
    except LocationRefused as error:
        raise InvalidInput(f"{where}: {error.message}") from None
    return text.rstrip("/")


# -- the file --------------------------------------------------------------------------------------


class _Entry(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A table `[warehouse.NAME]` of the file."""

    location: str
    allowed_locations: tuple[str, ...] = ()
    choose_locations: bool | None = None
    access_delegation: tuple[str, ...] = ()
    delete_files: bool = False
    role_arn: str = ""
    external_id: str = ""
    sts_endpoint: str = ""
    credentials_seconds: int = 3600
    storage: dict[str, str | int | bool] = field(default_factory=dict)
    client: dict[str, str | int | bool] = field(default_factory=dict)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    warehouse: dict[str, _Entry]
    secret: str = ""


def from_toml(data: bytes) -> tuple[Warehouses, bool]:
    """Returns the warehouses of a TOML file, and whether the file holds secrets.

    Raises `InvalidInput` that names the place.
    """
    try:
        file = msgspec.convert(tomllib.loads(data.decode()), _File)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from None
    if file.secret and len(file.secret) < _SHORTEST_SECRET:
        raise InvalidInput(f"secret must have at least {_SHORTEST_SECRET} characters")
    warehouses = [_warehouse(name, entry) for name, entry in file.warehouse.items()]
    secret = Secret(file.secret) if file.secret else None
    holds_secrets = bool(file.secret) or any(
        warehouse.storage.keys() - _OPEN_SETTINGS for warehouse in warehouses
    )
    return Warehouses(warehouses, secret), holds_secrets


def _warehouse(name: str, entry: _Entry) -> Warehouse:
    where = f"warehouse.{name}"
    _check_name(name, where)
    location = _location(entry.location, f"{where}.location")
    more = (_location(uri, f"{where}.allowed-locations") for uri in entry.allowed_locations)
    storage = _texts(entry.storage)
    for_clients = _for_clients(storage) | _texts(entry.client)
    delegation = frozenset(entry.access_delegation)
    choose = not delegation if entry.choose_locations is None else entry.choose_locations
    made = Warehouse(
        name=name,
        location=location,
        allowed=(location, *more),
        storage=storage,
        client_config=for_clients,
        delegation=delegation,
        vending=_vending(entry) if entry.role_arn else None,
        choose_locations=choose,
        delete_files=entry.delete_files,
    )
    for setting in for_clients:
        if _SECRET.search(setting):
            raise InvalidInput(
                f"{where}.client: {setting} is a secret, or names one; clients see it"
            )
    _check_delegation(made, where)
    return made


def _for_clients(storage: Mapping[str, str]) -> dict[str, str]:
    """The settings that clients need too.

    Some call the region by one name, some by the other.
    """
    settings = {key: storage[key] for key in _FOR_CLIENTS if key in storage}
    if region := settings.get("client.region") or settings.get("s3.region"):
        settings = {"client.region": region, "s3.region": region} | settings
    return settings


def _vending(entry: _Entry) -> Vending:
    return Vending(
        role_arn=entry.role_arn,
        external_id=entry.external_id,
        sts_endpoint=entry.sts_endpoint,
        seconds=entry.credentials_seconds,
    )


def _check_delegation(made: Warehouse, where: str) -> None:
    if unknown := made.delegation - set(DELEGATIONS):
        raise InvalidInput(
            f"{where}.access-delegation: '{min(unknown)}' is unknown; write"
            f" {' or '.join(DELEGATIONS)}"
        )
    if made.delegation and not made.is_s3:
        raise InvalidInput(f"{where}.access-delegation: works for locations in S3 only")
    if made.delete_files and not made.delegation:
        raise InvalidInput(
            f"{where}.delete-files: is about access-delegation, and the warehouse has none"
        )
    if VENDED_CREDENTIALS in made.delegation and made.vending is None:
        raise InvalidInput(f"{where}.role-arn is missing; {VENDED_CREDENTIALS} need it")
    if made.vending is not None and not 900 <= made.vending.seconds <= 43200:  # noqa: PLR2004 - the limits of STS
        raise InvalidInput(f"{where}.credentials-seconds must be between 900 and 43200")


def _texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as FileIO takes them: all values are text."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
