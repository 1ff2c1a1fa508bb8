"""A folder of tables as the source of an import, such as the warehouse of Hive or Hadoop.

A folder is a table or view if its folder `metadata` has metadata files. Its name is its path below
the root, without the suffix `.db` that Hive adds to namespaces. Folders of tables, of partitions
(`day=1`) and hidden ones are not searched, and symbolic links are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, NessieError, NotFound
from nessie_cli.iceberg.files import Files, MissingFile, NoAnswer
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.newest import version_of
from nessie_cli.importing.source import (
    Listing,
    Name,
    SourceContent,
    SourceNamespace,
    SourceProblem,
)
from nessie_cli.importing.sources.folders import EntryKind, FolderEntry, entries_of
from nessie_cli.importing.sources.names import outermost, parents
from nessie_cli.importing.sources.table_folder import METADATA, TableFolder
from nessie_cli.model.progress import Progress

AT_ONCE = 8
"""Folders that are read at the same time."""
_HIVE = ".db"
_OTHER_FORMATS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}


class _Place(NamedTuple):
    """A folder, and its path below the root."""

    location: str
    path: Name

    @property
    def namespace(self) -> Name:
        """The name of a namespace in this folder."""
        return tuple(element.removesuffix(_HIVE) or element for element in self.path)

    def below(self, name: str) -> _Place:
        """Returns a folder in this one."""
        return _Place(f"{self.location.rstrip('/')}/{name}", (*self.path, name))


class Folder:
    """The tables and views in the folders below a root."""

    def __init__(self, location: str, properties: Mapping[str, str]) -> None:
        self.label = location
        self.properties = properties

    def listing(self, namespaces: Sequence[Name], progress: Progress | None = None) -> Listing:
        """Searches the folders level by level. See `Source`.

        Cost: one request for each folder, and a few for each table.
        """
        search = _Search(self.label, self.properties, outermost(namespaces))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="import") as pool:
            level = [_Place(self.label, ())]
            count = 0
            while level:
                below: list[_Place] = []
                for places in pool.map(search.read, level):
                    below.extend(places)
                    count += 1
                    if progress is not None:
                        progress(count, None)
                level = below
        return search.listing()

    def close(self) -> None:
        """Does nothing: no connection is kept."""


class _Search:
    """The tables and problems in folders. Several threads append to its lists."""

    def __init__(
        self, root: str, properties: Mapping[str, str], namespaces: Sequence[Name]
    ) -> None:
        self._root = root
        self._properties = properties
        self._files = Files(properties)
        self._namespaces = namespaces
        self._existing: set[Name] = set()
        self._contents: list[tuple[SourceContent, str]] = []
        self._problems: list[SourceProblem] = []
        self._left_out: list[SourceProblem] = []

    def read(self, place: _Place) -> list[_Place]:
        """Reads a folder, and returns the folders in it that are still to be read."""
        self._existing.add(place.namespace)
        try:
            entries = entries_of(place.location, self._properties)
            folders = {entry.name for entry in entries if entry.kind is EntryKind.FOLDER}
            for marker, format_ in _OTHER_FORMATS.items():
                if marker in folders:
                    self._leave_out(place, f"is a table of {format_}")
                    return []
            if METADATA in folders and self._add_table(place):
                return []
            if not place.path and any(version_of(entry.name) is not None for entry in entries):
                raise InvalidInput(
                    f"{shown(place.location)} has the metadata files of one table",
                    hint="name the folder of the table, or of the warehouse",
                )
        except NessieError as error:
            if isinstance(error, MissingFile) and not place.path:
                raise NotFound(error.message, place.location) from None
            if isinstance(error, NoAnswer) or not place.path:
                raise
            self._problems.append(SourceProblem(error.message, location=place.location))
            return []
        if any("=" in name for name in folders):
            self._leave_out(place, "has folders of partitions, but no metadata of Iceberg")
            return []
        return self._below(place, entries)

    def _add_table(self, place: _Place) -> bool:
        """Adds the table or view in a folder. Returns whether it is one."""
        entries = entries_of(place.below(METADATA).location, self._properties)
        names = [entry.name for entry in entries]
        table = TableFolder(place.location, names, self._files)
        if not table.has_metadata:
            if is_of_table := any(name.endswith(".avro") for name in names):
                self._leave_out(place, "has manifests, but no metadata file: the table was deleted")
            return is_of_table
        *namespaces, last = place.path or (self._root.rstrip("/").rpartition("/")[2],)
        name = (*_Place("", tuple(namespaces)).namespace, last)
        if self._namespaces and not any(
            len(name) > len(start) and name[: len(start)] == start for start in self._namespaces
        ):
            return True
        outcome = table.current(name)
        if outcome.content is not None:
            self._contents.append((outcome.content, place.location))
        self._problems.extend(outcome.problems)
        self._left_out.extend(outcome.left_out)
        return True

    def _below(self, place: _Place, entries: Iterable[FolderEntry]) -> list[_Place]:
        below = []
        for entry in entries:
            child = place.below(entry.name)
            if entry.kind is EntryKind.FILE or not self._leads_to_chosen(child.namespace):
                continue
            if entry.kind is EntryKind.LINK:
                self._leave_out(child, "is a symbolic link, which is not followed")
            elif entry.name.startswith("."):
                self._leave_out(child, "is a hidden folder, which is not searched")
            else:
                below.append(child)
        return below

    def _leads_to_chosen(self, name: Name) -> bool:
        """Whether a namespace is one of the chosen ones, above one, or below one."""
        return not self._namespaces or any(
            name[: len(start)] == start[: len(name)] for start in self._namespaces
        )

    def _leave_out(self, place: _Place, reason: str) -> None:
        self._left_out.append(SourceProblem(reason, location=place.location))

    def listing(self) -> Listing:
        """Returns the listing, with a problem for each namespace that does not exist."""
        missing = [
            SourceProblem("no such namespace", start)
            for start in self._namespaces
            if start not in self._existing
        ]
        contents, doubles = self._without_doubles()
        problems = [*missing, *doubles, *sorted(self._problems, key=_order)]
        if not contents and not problems:
            problems = [
                SourceProblem(
                    "has no table or view of Iceberg that is current", location=self._root
                )
            ]
        return Listing(
            [SourceNamespace(name) for name in parents(content.name for content in contents)],
            contents,
            problems,
            sorted(self._left_out, key=_order),
        )

    def _without_doubles(self) -> tuple[list[SourceContent], list[SourceProblem]]:
        """Returns the contents, without those whose name several folders have."""
        contents, doubles = [], []
        ordered = sorted(self._contents, key=lambda pair: (pair[0].name, pair[1]))
        for name, pairs in groupby(ordered, key=lambda pair: pair[0].name):
            same = list(pairs)
            if len(same) == 1:
                contents.append(same[0][0])
            else:
                folders = " and ".join(location for _, location in same)
                doubles.append(SourceProblem(f"several folders have this name: {folders}", name))
        return contents, doubles


def _order(problem: SourceProblem) -> tuple[Name, str]:
    return problem.name, problem.location
