"""The properties that a catalog of others sends: no code, and no place for secrets.

PyIceberg imports and calls what properties such as `py-io-impl` and `auth` name. A REST catalog
sends properties with its configuration and with each table, and the writers of a table choose
those in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import PY_CATALOG_IMPL, TYPE, URI, Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

_CODE = "impl"
"""The ending of all properties of PyIceberg that name a class."""
_ISSUER = "oauth2-server-uri"
"""Where PyIceberg sends the client secret of the user."""


def may_be_sent(name: str, value: Any) -> bool:
    """Returns whether a server may choose a property. Those of authentication are objects."""
    return isinstance(value, str) and not name.endswith(_CODE) and name != _ISSUER


class ForeignRestCatalog(RestCatalog):
    """A REST catalog whose configuration chooses no code and no issuer. The user may."""

    def _fetch_config(self) -> None:
        own = {
            name: value for name, value in self.properties.items() if not may_be_sent(name, value)
        }
        super()._fetch_config()
        sent = {name: value for name, value in self.properties.items() if may_be_sent(name, value)}
        self.properties = {**sent, **own}


def ignore_tables(catalog: Catalog) -> None:
    """Lets a catalog read files by its own properties only, not by those of tables."""
    load = getattr(catalog, "_load_file_io", None)
    if load is None:
        return

    def load_own(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:  # noqa: ARG001 - PyIceberg's signature
        file_io: FileIO = load(location=location)
        return file_io

    vars(catalog)["_load_file_io"] = load_own


def open_configured(name: str, settings: Mapping[str, Any]) -> Catalog:
    """Opens a catalog as PyIceberg's `load_catalog` does. Its answers and tables choose no code."""
    catalog = (
        ForeignRestCatalog(name, **settings)
        if _is_rest(settings)
        else load_catalog(name, **settings)
    )
    ignore_tables(catalog)
    return catalog


def _is_rest(settings: Mapping[str, Any]) -> bool:
    kind, uri = settings.get(TYPE), str(settings.get(URI, ""))
    if PY_CATALOG_IMPL in settings or not uri:
        return False
    return uri.startswith("http") if kind is None else str(kind).lower() == "rest"
