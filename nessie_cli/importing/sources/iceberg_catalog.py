"""A catalog of PyIceberg as the source of an import, through PyIceberg's public interface.

Only REST catalogs list views. PyIceberg does not return the metadata file of a view, so it is
looked up in the view's folder by its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import BadRequestError, NoSuchNamespaceError

from nessie_cli.importing.source import (
    Listing,
    Name,
    SourceContent,
    SourceKind,
    SourceNamespace,
    SourceProblem,
)
from nessie_cli.importing.sources.catalog_errors import CatalogErrors
from nessie_cli.importing.sources.names import outermost, parents
from nessie_cli.importing.sources.view_files import ViewFiles
from nessie_cli.model.progress import Progress

AT_ONCE = 8
"""Requests to a catalog at the same time."""
INIT_TABLES = "init_catalog_tables"
"""Whether PyIceberg creates the missing tables of a SQL catalog."""
_EMPTY = {"exists": "true"}
"""What PyIceberg's SQL catalog stores for a namespace without properties."""

Outcome = SourceNamespace | SourceContent | SourceProblem


class IcebergCatalog:
    """The tables, views and namespaces of a catalog of PyIceberg."""

    def __init__(self, catalog: Catalog, errors: CatalogErrors, at_once: int = AT_ONCE) -> None:
        """Takes an open catalog, and how many requests it takes at the same time."""
        self._catalog = catalog
        self._errors = errors
        self._at_once = at_once
        self._view_files = ViewFiles(catalog.properties)
        self.label = errors.label

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog, which are also those of its FileIO."""
        return {
            name: value
            for name, value in self._catalog.properties.items()
            if isinstance(value, str) and name != INIT_TABLES
        }

    def listing(self, namespaces: Sequence[Name], progress: Progress | None = None) -> Listing:
        """Lists the namespaces level by level, then loads each table and view. See `Source`."""
        with (
            self._errors.translated(),
            ThreadPoolExecutor(self._at_once, thread_name_prefix="import") as pool,
        ):
            walk = _Walk(self._catalog, self._errors)
            walk.start(outermost(namespaces))
            level = walk.level
            while level:
                list(pool.map(walk.read, level))
                level = walk.next_level()
            contents = self._loaded(pool, sorted(walk.names, key=lambda named: named[1]), progress)
        return walk.listing(contents)

    def _loaded(
        self,
        pool: ThreadPoolExecutor,
        names: Sequence[tuple[SourceKind, Name]],
        progress: Progress | None,
    ) -> list[SourceContent | SourceProblem]:
        loaded: list[SourceContent | SourceProblem] = []
        try:
            for content in pool.map(self._load, names):
                if progress is not None:
                    progress(len(loaded), len(names))
                loaded.append(content)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return loaded

    def _load(self, named: tuple[SourceKind, Name]) -> SourceContent | SourceProblem:
        kind, name = named
        try:
            location = self._location_of(kind, name)
        except Exception as error:
            if self._errors.is_silent(error):
                raise
            return SourceProblem(
                f"the catalog cannot load this {kind}: {self._errors.message(error)}", name
            )
        if not location and kind is SourceKind.VIEW:
            return SourceProblem(
                "no metadata file in its folder has the content of this view", name
            )
        if not location:
            return SourceProblem("the catalog names no metadata file of this table", name)
        return SourceContent(name, kind, location)

    def _location_of(self, kind: SourceKind, name: Name) -> str | None:
        """Returns the metadata file of a table or view."""
        if kind is SourceKind.TABLE:
            return self._catalog.load_table(name).metadata_location
        return self._view_files.location_of(self._catalog.load_view(name).metadata)

    def close(self) -> None:
        """Closes the connections of the catalog."""
        self._catalog.close()


class _Walk:
    """The namespaces of a catalog and the names in them, read level by level by several threads.

    Each list only grows by `append` and `extend`, which threads may call at the same time.
    """

    def __init__(self, catalog: Catalog, errors: CatalogErrors) -> None:
        self._catalog = catalog
        self._errors = errors
        self.level: list[Name] = []
        self._below: list[Name] = []
        self._namespaces: list[SourceNamespace] = []
        self.names: list[tuple[SourceKind, Name]] = []
        self._problems: list[SourceProblem] = []
        self._left_out: list[SourceProblem] = []
        self._lists_views = True

    def start(self, namespaces: Sequence[Name]) -> None:
        """Begins with the given namespaces, or with all of the catalog."""
        if namespaces:
            for name in parents(namespaces):
                self._add_properties(name)
            self.level = list(namespaces)
        else:
            self.level = list(map(tuple, self._catalog.list_namespaces()))

    def next_level(self) -> list[Name]:
        """Returns the namespaces directly below those that were read last."""
        level, self._below = sorted(self._below), []
        return level

    def read(self, namespace: Name) -> None:
        """Reads a namespace. If it cannot be read, this is a problem of the namespace."""
        try:
            # Hive and Glue list nothing below a namespace that does not exist.
            if not self._add_properties(namespace):
                self._problems.append(SourceProblem("no such namespace", namespace))
                return
            tables = [
                (SourceKind.TABLE, tuple(name)) for name in self._catalog.list_tables(namespace)
            ]
            self.names.extend(tables)
            self._add_views(namespace)
            self._add_below(namespace)
        except Exception as error:
            if self._errors.is_silent(error):
                raise
            self._problems.append(
                SourceProblem(
                    f"the catalog cannot list this namespace: {self._errors.message(error)}",
                    namespace,
                )
            )

    def _add_properties(self, namespace: Name) -> bool:
        try:
            properties = dict(self._catalog.load_namespace_properties(namespace))
        except NoSuchNamespaceError:
            return False
        except NotImplementedError:
            properties = {}
        if properties == _EMPTY:
            properties = {}
        texts = {name: value for name, value in properties.items() if isinstance(value, str)}
        self._namespaces.append(SourceNamespace(namespace, texts))
        return True

    def _add_views(self, namespace: Name) -> None:
        try:
            views = self._catalog.list_views(namespace)
        except NotImplementedError:
            self._lists_views = False
            return
        self.names.extend((SourceKind.VIEW, tuple(name)) for name in views)

    def _add_below(self, namespace: Name) -> None:
        try:
            below = self._catalog.list_namespaces(namespace)
        except BadRequestError:
            # A catalog without nested namespaces refuses the question.
            self._left_out.append(
                SourceProblem("the catalog does not list namespaces inside of this one", namespace)
            )
            return
        # Some catalogs answer with all namespaces, or with the namespace itself.
        length = len(namespace)
        self._below.extend(
            name for name in map(tuple, below) if len(name) > length and name[:length] == namespace
        )

    def listing(self, contents: Iterable[SourceContent | SourceProblem]) -> Listing:
        """Returns the listing, with the contents that were loaded."""
        loaded = [content for content in contents if isinstance(content, SourceContent)]
        problems = [
            *self._problems,
            *(content for content in contents if isinstance(content, SourceProblem)),
        ]
        label = self._errors.label
        if not loaded and not problems:
            problems.append(SourceProblem("has no Iceberg tables or views", location=label))
        left_out = list(self._left_out)
        if not self._lists_views:
            left_out.append(
                SourceProblem(
                    "PyIceberg cannot list views in this catalog", location=f"views of {label}"
                )
            )
        return Listing(
            sorted(self._namespaces, key=lambda namespace: namespace.name),
            loaded,
            problems,
            left_out,
        )
