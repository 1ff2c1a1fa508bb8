"""Warehouses from options of the command or from a TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import Allowed, LocationRefused, scheme_of
from nessie_cli.iceberg.warehouses.warehouse import (
    DELEGATIONS,
    SHORTEST_SECRET,
    VENDED_CREDENTIALS,
    Vending,
    Warehouse,
    Warehouses,
)
from nessie_cli.model import Secret
from nessie_cli.wire.toml_text import parse_toml

DEFAULT_NAME = "warehouse"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)
_SECRET = re.compile(r"secret|token|password|credential|access-key|account-key|connection-string")
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
        file = msgspec.convert(parse_toml(data.decode()), _File)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidInput(
            str(error), hint="each warehouse is a table [warehouse.NAME] with a location"
        ) from None
    if file.secret and len(file.secret) < SHORTEST_SECRET:
        raise InvalidInput(f"secret must have at least {SHORTEST_SECRET} characters")
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
