"""Opens catalogs of PyIceberg by a name in its configuration or by a URI."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyiceberg.catalog import (
    AVAILABLE_CATALOGS,
    PY_CATALOG_IMPL,
    Catalog,
    CatalogType,
    infer_catalog_type,
    load_catalog,
)

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound
from nessie_cli.iceberg.files import leave_warnings_to_programs
from nessie_cli.importing.sources.catalog_errors import CatalogErrors
from nessie_cli.importing.sources.configuration import catalog_names, catalog_properties
from nessie_cli.importing.sources.foreign_properties import ForeignRestCatalog, ignore_tables
from nessie_cli.importing.sources.iceberg_catalog import AT_ONCE, INIT_TABLES, IcebergCatalog
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.workspace.secrets import without_secrets

NAME = "name"
"""The property with the name of a catalog in a SQL database, which may hold several."""
_TYPE = "type"
_URI = "uri"
_NONE = "source"
_WITH_URI = {CatalogType.REST.value, CatalogType.HIVE.value, CatalogType.SQL.value}
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
    # The client of Hive logs what it raises.
    logging.getLogger("thrift").addHandler(logging.NullHandler())
    label = without_secrets(text)
    settings = {_URI: text} if is_uri else _configured(text, kind)
    settings |= {name: value for name, value in properties.items() if name != NAME}
    _set_type(label, settings, kind)
    if target is not None and is_of(target, str(settings.get(_URI, ""))):
        raise InvalidInput(
            f"{label} is this repository itself",
            hint="`nessie merge` brings the contents of another branch",
        )
    errors = CatalogErrors(label, settings)
    name = properties.get(NAME) or (None if is_uri else text)
    try:
        with errors.translated():
            catalog = _loaded(name, settings)
            ignore_tables(catalog)
    except NotAllowed as error:
        if not is_uri:
            raise
        hint = "configure a catalog with its credentials in PyIceberg, and name it as the source"
        raise NotAllowed(error.message, hint=hint) from None
    # A client of Hive has one connection, and no lock.
    at_once = 1 if settings.get(_TYPE) == CatalogType.HIVE.value else AT_ONCE
    return IcebergCatalog(catalog, errors, at_once)


def _configured(name: str, kind: str | None) -> dict[str, Any]:
    settings = catalog_properties(name)
    if settings is None and not name == kind == CatalogType.GLUE.value:
        names = ", ".join(sorted(catalog_names())) or "no catalogs"
        raise NotFound(
            f"PyIceberg's configuration has no catalog {name}",
            name,
            hint=f"it has {names}; a catalog can also be named by its URI",
        )
    return settings or {}


def _set_type(label: str, settings: dict[str, Any], kind: str | None) -> None:
    """Completes the type of a catalog. Raises `InvalidInput` if it is another one or unknown."""
    if PY_CATALOG_IMPL in settings:
        return
    configured = settings.get(_TYPE)
    if configured is None and _URI in settings:
        with suppress(ValueError):
            inferred = infer_catalog_type(label, settings)
            configured = inferred.value if inferred else None
    if kind is not None and configured not in (None, kind):
        raise InvalidInput(f"{label} is a catalog of type {configured}, not {kind}")
    settings[_TYPE] = str(kind or configured or "").lower()
    if settings[_TYPE] not in {type_.value for type_ in CatalogType}:
        raise InvalidInput(
            f"{label}: PyIceberg's configuration does not say the type of the catalog",
            hint="name it by --type, or the URI by --property uri=URI",
        )
    if settings[_TYPE] in _WITH_URI and not settings.get(_URI):
        raise InvalidInput(
            f"{label}: PyIceberg's configuration has no URI of the catalog",
            hint="name it by --property uri=URI",
        )


def is_of(repository: ReadableRepository, uri: str) -> bool:
    """Returns whether a URI is that of a repository, or of the Iceberg catalog of its server."""
    root = repository.url.removesuffix("/api/v2")
    is_same_server = root != repository.url and f"{uri}/".startswith(f"{root}/iceberg/")
    return uri == repository.url or is_same_server


def _loaded(name: str | None, settings: Mapping[str, Any]) -> Catalog:
    if file := sqlite_file(str(settings.get(_URI, ""))):
        _check_file(file)
    catalog = _load(name or _NONE, settings)
    if settings.get(_TYPE) != CatalogType.SQL.value:
        return catalog
    try:
        chosen = _chosen(name, _names_in(catalog)) or catalog.name
    except BaseException:
        catalog.close()
        raise
    if chosen == catalog.name:
        return catalog
    catalog.close()
    return _load(chosen, settings)


def _load(name: str, settings: Mapping[str, Any]) -> Catalog:
    if PY_CATALOG_IMPL in settings:
        return load_catalog(name, **settings)
    # `load_catalog` would add the properties of a configured catalog with this name, and send its
    # credentials to any URI.
    kind = CatalogType(settings[_TYPE])
    if kind is CatalogType.REST:
        return ForeignRestCatalog(name, **settings)
    # PyIceberg would create missing tables of a database, but an import only reads a source.
    reading = {INIT_TABLES: "false"} if kind is CatalogType.SQL else {}
    return AVAILABLE_CATALOGS[kind](name, {**reading, **settings})


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


def sqlite_file(uri: str) -> str | None:
    """Returns the path of the file in a URI of SQLite; None for another URI."""
    file = _FILE.match(uri)
    return file["path"] if file else None


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
