"""The catalog that an export registers tables in: one that PyIceberg opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyiceberg.catalog import PY_CATALOG_IMPL, Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

from nessie_cli.errors import InvalidInput, NotFound, ReferenceConflict
from nessie_cli.iceberg.files import leave_warnings_to_programs
from nessie_cli.importing.sources.catalog_errors import CatalogErrors
from nessie_cli.importing.sources.catalog_opening import is_of, sqlite_file
from nessie_cli.importing.sources.configuration import catalog_names, catalog_properties
from nessie_cli.importing.sources.foreign_properties import open_configured
from nessie_cli.importing.sources.iceberg_catalog import AT_ONCE, INIT_TABLES
from nessie_cli.model.progress import Progress
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.wire.rest import REPOSITORY_CREATED
from nessie_cli.wire.scalars import instant

Name = tuple[str, ...]
UNREADABLE = ""
"""The location of a table that the catalog has and cannot load."""
_KINDS = {
    "RestCatalog": "rest",
    "SqlCatalog": "sql",
    "HiveCatalog": "hive",
    "GlueCatalog": "glue",
    "DynamoDbCatalog": "dynamodb",
    "NessieCatalog": "nessie",
}
"""Catalogs of PyIceberg by class name, because their modules may need other packages."""
_OVERWRITE = ("rest", "nessie")
_FLAT = ("hive", "glue")
"""Catalogs whose tables are in databases, with names in small letters."""


def open_target(name: str, repository: ReadableRepository) -> Target:
    """Opens the catalog with a name in PyIceberg's configuration.

    Nothing is written: the tables of a new SQL catalog are created by the first write. Raises
    `NotFound` for an unknown name, `InvalidInput` for `repository` itself and for a catalog that
    cannot register tables, `NotAllowed` and `StoreUnavailable`.
    """
    leave_warnings_to_programs()
    settings = catalog_properties(name)
    if settings is None:
        names = ", ".join(sorted(catalog_names())) or "no catalogs"
        raise NotFound(
            f"PyIceberg's configuration has no catalog {name}", name, hint=f"it has {names}"
        )
    if is_of(repository, str(settings.get("uri", ""))):
        raise InvalidInput(f"{name} is this repository itself")
    target = Target(name, settings)
    created = repository.config().created
    if created is not None and target.repository_created == instant(created):
        target.close()
        raise InvalidInput(
            f"{name} is this repository itself, or a copy of it",
            hint="export to a catalog of its own",
        )
    return target


class Target:
    """An open catalog. The methods raise `InvalidInput`, `NotAllowed` and `StoreUnavailable`."""

    def __init__(self, label: str, settings: Mapping[str, Any]) -> None:
        """Opens the catalog with these properties."""
        self.label = label
        # Other implementations may refuse an unknown option.
        own = {} if PY_CATALOG_IMPL in settings else {INIT_TABLES: "false"}
        self._settings = {**own, **settings}
        self._errors = CatalogErrors(label, settings)
        self._opened: Catalog | None = None
        file = sqlite_file(str(settings.get("uri", "")))
        # SQLite would create the file.
        self._is_new = file is not None and not Path(file).exists()
        if self._is_new:
            self.kind = "sql"
        else:
            self.kind = _kind_of(self._catalog)
            self._is_new = self.kind == "sql" and not self._has_tables()
        if self.kind == "dynamodb":
            raise InvalidInput(f"{label}: a catalog in DynamoDB cannot register tables")

    @property
    def repository_created(self) -> str | None:
        """The creation of the repository behind the catalog; None for other catalogs."""
        if self._is_new:
            return None
        if self.kind == "nessie":
            with self._errors.translated():
                return instant(self._catalog.repository_created)  # type: ignore[attr-defined]
        return self._catalog.properties.get(REPOSITORY_CREATED)

    @property
    def overwrites(self) -> bool:
        """Whether a table can be registered again without a moment in which it is missing."""
        return self.kind in _OVERWRITE

    @property
    def registers_views(self) -> bool:
        """Whether views can be registered."""
        if self.kind != "rest":
            return self.kind == "nessie"
        from pyiceberg.catalog.rest import Capability

        # PyIceberg has no public method for it.
        endpoints = getattr(self._catalog, "_supported_endpoints", ())
        return Capability.V1_REGISTER_VIEW in endpoints

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of FileIO with which the catalog reads files."""
        named = self._settings.items()
        return {name: value for name, value in named if isinstance(value, str)}

    def problem_of(self, name: Name) -> str | None:
        """Returns the reason why a table cannot have this name, or None."""
        if len(name) == 1:
            return "a table needs a namespace: --prefix gives it one"
        if self.kind in _FLAT:
            if len(name) > 2:  # noqa: PLR2004 - a database and a table
                return f"{self.kind} has no namespaces in namespaces"
            if any(element != element.lower() for element in name):
                return f"{self.kind} has only names in small letters"
        if self.kind not in ("rest", "nessie") and any("." in element for element in name):
            return f"{self.kind} has no names with dots"
        return None

    def holds_namespace(self, name: Name) -> bool:
        """Whether the catalog can have a namespace of this name."""
        return self.kind not in _FLAT or (len(name) == 1 and name[0] == name[0].lower())

    # -- reading ----------------------------------------------------------------------------------

    def locations(self, names: Sequence[Name], progress: Progress | None = None) -> dict[Name, str]:
        """Returns the metadata files of those tables that exist; `UNREADABLE` if one is unknown."""
        if self._is_new:
            return {}
        locations: dict[Name, str] = {}
        # A client of Hive has one connection, and no lock.
        with (
            self._errors.translated(),
            ThreadPoolExecutor(1 if self.kind == "hive" else AT_ONCE, "export") as pool,
        ):
            for name, location in zip(names, pool.map(self._location, names), strict=True):
                if location is not None:
                    locations[name] = location
                if progress is not None:
                    progress(len(locations), len(names))
        return locations

    def location(self, name: Name) -> str | None:
        """Returns the metadata file of a table, or None."""
        return self.locations([name]).get(name)

    def _location(self, name: Name) -> str | None:
        try:
            return self._catalog.load_table(name).metadata_location
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            if self._errors.is_silent(error) or not self._catalog.table_exists(name):
                raise
            return UNREADABLE

    def views(self, namespaces: Iterable[Name]) -> set[Name]:
        """Returns the names of the views in these namespaces."""
        views: set[Name] = set()
        if self._is_new:
            return views
        with self._errors.translated():
            for namespace in sorted(set(namespaces)):
                try:
                    views.update(map(tuple, self._catalog.list_views(namespace)))
                except NotImplementedError:
                    break
                except NoSuchNamespaceError:
                    continue
        return views

    def missing_namespaces(self, namespaces: Iterable[Name]) -> list[Name]:
        """Returns those namespaces that do not exist, outermost first."""
        names = sorted(set(namespaces))
        if self._is_new:
            return names
        with self._errors.translated():
            return [name for name in names if not self._has_namespace(name)]

    def _has_namespace(self, name: Name) -> bool:
        try:
            self._catalog.load_namespace_properties(name)
        except NoSuchNamespaceError:
            return False
        return True

    # -- writing ----------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Creates the tables of a new SQL catalog."""
        if self._is_new:
            with self._errors.translated("written"):
                self._catalog.create_tables()  # type: ignore[attr-defined]
            self._is_new = False

    def create_namespace(self, name: Name, properties: Mapping[str, str]) -> None:
        """Creates a namespace. Does nothing if it exists."""
        with self._writing(name), suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(name, dict(properties))

    def register(self, name: Name, location: str) -> None:
        """Registers a table. Raises `ReferenceConflict` if the name is taken."""
        with self._writing(name):
            self._catalog.register_table(name, location)

    def register_view(self, name: Name, location: str) -> None:
        """Registers a view. Raises `ReferenceConflict` if the name is taken."""
        with self._writing(name):
            self._catalog.register_view(name, location)

    def overwrite(self, name: Name, location: str) -> bool:
        """Registers another metadata file of a table, in one step.

        Returns False if the server turns out not to do it: older ones ignore `overwrite`.
        """
        with self._writing(name):
            try:
                self._catalog.register_table(name, location, overwrite=True)
            except TableAlreadyExistsError:
                return False
        return True

    def replace(self, name: Name, location: str, earlier: str) -> None:
        """Drops a table and registers it again. If that fails, registers the earlier file."""
        with self._writing(name):
            self._catalog.drop_table(name)
            try:
                self._catalog.register_table(name, location)
            except BaseException:
                if earlier:
                    self._catalog.register_table(name, earlier)
                raise

    def drop(self, name: Name) -> None:
        """Drops a table without its files."""
        with self._writing(name), suppress(NoSuchTableError):
            self._catalog.drop_table(name)

    @contextmanager
    def _writing(self, name: Name) -> Iterator[None]:
        shown = ".".join(name)
        with self._errors.translated("written"):
            try:
                yield
            except (TableAlreadyExistsError, ViewAlreadyExistsError):
                raise ReferenceConflict(
                    f"{self.label} has {shown} meanwhile",
                    hint="run the same command again to see what it would do now",
                ) from None

    # -- the catalog ------------------------------------------------------------------------------

    @property
    def _catalog(self) -> Catalog:
        if self._opened is None:
            with self._errors.translated():
                self._opened = open_configured(self.label, self._settings)
        return self._opened

    def _has_tables(self) -> bool:
        from sqlalchemy import inspect

        with self._errors.translated():
            return bool(inspect(self._catalog.engine).has_table("iceberg_tables"))  # type: ignore[attr-defined]

    def close(self) -> None:
        """Closes the connections of the catalog."""
        if self._opened is not None:
            self._opened.close()


def _kind_of(catalog: Catalog) -> str:
    names = (kind.__name__ for kind in type(catalog).__mro__)
    return next((_KINDS[name] for name in names if name in _KINDS), type(catalog).__name__)
