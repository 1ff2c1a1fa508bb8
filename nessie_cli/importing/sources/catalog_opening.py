"""Opens catalogs of PyIceberg by a name in its configuration or by a URI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.iceberg.files import leave_warnings_to_programs
from nessie_cli.importing.sources.catalog_errors import CatalogErrors
from nessie_cli.importing.sources.configuration import catalog_names, catalog_properties
from nessie_cli.importing.sources.iceberg_catalog import AT_ONCE, IcebergCatalog
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.workspace.secrets import without_secrets

NAME = "name"
"""The property with the name of a catalog in a SQL database, which may hold several."""
_TYPE = "type"
_URI = "uri"
_NONE = "default"
_FILE = re.compile(r"sqlite(?:\+[a-z]+)?:///(?P<path>[^?]+)")


def open_catalog(
    text: str,
    kind: str | None,
    properties: Mapping[str, str],
    *,
    is_uri: bool,
    target: ReadableRepository | None = None,
) -> IcebergCatalog:
    """Opens the catalog with a URI, or with a name in PyIceberg's configuration.

    `kind` is its type, None if the configuration has it. Raises `NotFound` for an unknown name,
    `InvalidInput`, `NotAllowed` and `StoreUnavailable`.
    """
    leave_warnings_to_programs()
    label = without_secrets(text)
    settings = {_URI: text} if is_uri else _configured(text, kind)
    settings |= {name: value for name, value in properties.items() if name != NAME}
    _check_type(label, settings, kind)
    if target is not None:
        _refuse_itself(label, str(settings.get(_URI, "")), target)
    errors = CatalogErrors(label, settings)
    name = properties.get(NAME) or (None if is_uri else text)
    with errors.translated():
        catalog = _loaded(name, settings)
    # A client of Hive has one connection, and no lock.
    at_once = 1 if settings.get(_TYPE) == "hive" else AT_ONCE
    return IcebergCatalog(catalog, errors, at_once)


def _configured(name: str, kind: str | None) -> dict[str, Any]:
    settings = catalog_properties(name)
    if settings is None and kind != name:
        names = ", ".join(sorted(catalog_names())) or "no catalogs"
        raise NotFound(
            f"PyIceberg's configuration has no catalog {name}",
            name,
            hint=f"it has {names}; a catalog can also be named by its URI",
        )
    return settings or {}


def _check_type(label: str, settings: dict[str, Any], kind: str | None) -> None:
    configured = settings.get(_TYPE)
    if kind is None:
        return
    if configured not in (None, kind):
        raise InvalidInput(f"{label} is a catalog of type {configured}, not {kind}")
    settings[_TYPE] = kind


def _refuse_itself(label: str, uri: str, target: ReadableRepository) -> None:
    """Raises `InvalidInput` if a URI is that of the repository that is imported into."""
    root = target.url.removesuffix("/api/v2")
    is_same_server = root != target.url and f"{uri}/".startswith(f"{root}/iceberg/")
    if uri == target.url or is_same_server:
        raise InvalidInput(
            f"{label} is this repository itself",
            hint="`nessie merge` brings the contents of another branch",
        )


def _loaded(name: str | None, settings: Mapping[str, Any]) -> Catalog:
    if file := _FILE.match(str(settings.get(_URI, ""))):
        _check_file(file["path"])
    # An import changes nothing at the source: PyIceberg would create missing tables of a database.
    reading = {"init_catalog_tables": "false", **settings}
    catalog = load_catalog(name or _NONE, **reading)
    if not hasattr(catalog, "engine"):
        return catalog
    try:
        chosen = _chosen(name, _names_in(catalog)) or catalog.name
    except BaseException:
        catalog.close()
        raise
    if chosen == catalog.name:
        return catalog
    catalog.close()
    return load_catalog(chosen, **reading)


def _chosen(name: str | None, names: Sequence[str]) -> str | None:
    """Returns the catalog to read among those in a database; None if there are none."""
    if name in names or not names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    described = "several catalogs:" if name is None else f"no catalog {name}, but"
    raise InvalidInput(
        f"the database has {described} {', '.join(names)}",
        hint=f"choose one by --property {NAME}={names[0]}",
    )


def _check_file(path: str) -> None:
    # SQLite would create the file.
    if not path.startswith("file:") and not Path(path).is_file():
        raise NotFound(f"{path}: no such database", path)


def _names_in(catalog: Any) -> list[str]:
    """Returns the names of the catalogs in the database of a SQL catalog."""
    from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables
    from sqlalchemy import select, union

    names = union(
        select(IcebergTables.catalog_name), select(IcebergNamespaceProperties.catalog_name)
    )
    with catalog.engine.connect() as connection:
        return sorted(connection.execute(names).scalars())
