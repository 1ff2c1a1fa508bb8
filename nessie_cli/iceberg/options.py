"""The options of a catalog: `uri`, `ref`, `warehouse`, `author`, `access.*` and FileIO's."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pyiceberg.catalog import PY_CATALOG_IMPL, URI, WAREHOUSE_LOCATION
from pyiceberg.exceptions import NoSuchPropertyException
from pyiceberg.io import PY_IO_IMPL

from nessie_cli import reaching
from nessie_cli.iceberg.locations import absolute_location
from nessie_cli.repository.base import Repository

REF = "ref"
AUTHOR = "author"
ACCESS = "access."
"""Prefix of the settings of nessie-access(7), such as `access.token-file`.

Secrets are not options.
"""

_OWN = (URI, REF, WAREHOUSE_LOCATION, AUTHOR, PY_CATALOG_IMPL, PY_IO_IMPL)


def checked(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the options that are not None, with the warehouse as an absolute location.

    Raises `NoSuchPropertyException` if `uri` is missing. Raises `ValueError` for an unknown option
    and for an empty `ref` or `warehouse`, which probably does not mean the default.
    """
    given = {name: value for name, value in properties.items() if value is not None}
    if not given.get(URI):
        raise NoSuchPropertyException(
            "uri is missing: the store of the catalog, "
            "such as sqlite:////data/catalog.sqlite or https://host/api/v2"
        )
    for name, value in given.items():
        if not isinstance(value, str):
            # PyIceberg raises ValueError for invalid options.
            raise ValueError(f"{name} must be a string, not {value!r}")  # noqa: TRY004
        _check_name(name, custom_io=PY_IO_IMPL in given)
    for name in (REF, WAREHOUSE_LOCATION):
        if name in given and not given[name].strip():
            raise ValueError(f"{name} is empty. Hint: omit it for the default")
    if WAREHOUSE_LOCATION in given:
        given[WAREHOUSE_LOCATION] = absolute_location(given[WAREHOUSE_LOCATION])
    return given


def _check_name(name: str, *, custom_io: bool) -> None:
    settings = [f"{ACCESS}{setting}" for setting in reaching.SETTINGS]
    if name in (
        "token",
        "credential",
        "password",
        f"{ACCESS}token",
        f"{ACCESS}password",
        f"{ACCESS}client-secret",
    ):
        raise ValueError(
            f"{name}: secrets are not options. "
            f"Hint: set NESSIE_AUTH_TOKEN or NESSIE_AUTH_PASSWORD, or use {ACCESS}token-file"
        )
    if (
        name in _OWN
        or name in settings
        or ("." in name and not name.startswith(ACCESS))
        or (custom_io and "." not in name)
    ):
        return
    near = get_close_matches(name, [*_OWN, *settings], n=1)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"the options are {', '.join(_OWN)}, {ACCESS}* and those of FileIO"
    )
    raise ValueError(f"{name}: unknown option. Hint: {hint}")


def opened(options: Mapping[str, str]) -> Repository:
    """Opens the repository of `uri`. The environment takes precedence over `access.*`."""
    return reaching.opened(
        options[URI], lambda name: options.get(f"{ACCESS}{name}"), lambda name: f"{ACCESS}{name}"
    )


def author(options: Mapping[str, str]) -> str | None:
    """Returns the author of commits: the option, otherwise the environment's or the user's."""
    return options.get(AUTHOR) or reaching.author()
