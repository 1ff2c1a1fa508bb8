"""The options of a catalog, checked before anything is opened: `uri`, `ref`, `warehouse`, `author`, `access.*`, and those of PyIceberg's FileIO."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pyiceberg.catalog import PY_CATALOG_IMPL, URI, WAREHOUSE_LOCATION
from pyiceberg.exceptions import NoSuchPropertyException
from pyiceberg.io import PY_IO_IMPL

from nessie_cli import reaching
from nessie_cli.iceberg.files import absolute_location
from nessie_cli.repository.base import Repository

REF = "ref"
AUTHOR = "author"
ACCESS = "access."
"""How a server is reached: `access.token-file` and the others of nessie-access(7); secrets themselves are no options."""

_OWN = (URI, REF, WAREHOUSE_LOCATION, AUTHOR, PY_CATALOG_IMPL, PY_IO_IMPL)


def checked(properties: Mapping[str, str | None]) -> dict[str, str]:
    """The options without those that are None, the warehouse as an absolute location.

    Raises `NoSuchPropertyException` without `uri`, `ValueError` for an option that nobody reads (one without a dot that is not ours, and one of
    `access.*` that is none), and for a `ref` or `warehouse` that is empty: what was meant is not the default branch.
    """
    given = {name: value for name, value in properties.items() if value is not None}
    if not given.get(URI):
        raise NoSuchPropertyException(
            "uri is missing: the store of the catalog, such as sqlite:////data/catalog.sqlite or https://host/api/v2"
        )
    for name, value in given.items():
        if not isinstance(value, str):
            raise ValueError(f"{name}: must be text, not {value!r}")  # noqa: TRY004 - what PyIceberg raises for options
        _check_name(name, custom_io=PY_IO_IMPL in given)
    for name in (REF, WAREHOUSE_LOCATION):
        if name in given and not given[name].strip():
            raise ValueError(f"{name}: is empty; leave it out where none is meant")
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
            f"{name}: a secret is no option; NESSIE_AUTH_TOKEN and NESSIE_AUTH_PASSWORD hold one, or {ACCESS}token-file names a file"
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
        f"; did you mean {near[0]}?"
        if near
        else f" (there are {', '.join(_OWN)}, {ACCESS}* and those of FileIO)"
    )
    raise ValueError(f"{name}: there is no such option{hint}")


def opened(options: Mapping[str, str]) -> Repository:
    """The repository of `uri`; a server is reached by `access.*`, the environment before them."""
    return reaching.opened(
        options[URI], lambda name: options.get(f"{ACCESS}{name}"), lambda name: f"{ACCESS}{name}"
    )


def author(options: Mapping[str, str]) -> str | None:
    """The author of commits: the option, else what the environment or the user's settings say."""
    return options.get(AUTHOR) or reaching.author()
