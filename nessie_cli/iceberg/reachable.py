"""All files that a table or view needs, from its metadata file down: manifest lists, manifests, data, deletes, statistics.

What is needed is what a reader of a kept snapshot opens, and nothing else. Two decisions:

* The *metadata log* of a table, its earlier metadata files, is not needed: no reader opens them. A catalog with history names each metadata file
  that can be read in a commit of its own, which is where their being needed comes from.
* Every snapshot that a metadata file lists is needed by default, not only the one that the catalog names: engines travel in time by
  that list, so a table that lists a snapshot whose files are gone is a damaged one. `Snapshots.REFERENCED` keeps the catalog's snapshot
  and those that tags and branches inside the table name.

Sources: the Iceberg table specification, versions 1 to 3 (manifest lists, manifests, deletion vectors, statistics files), and the view specification.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import fastavro
from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import Files, MissingFile, NoAnswer, first_line, shown
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.metadata import NO_SNAPSHOT, Document, parse_document


class Kind(StrEnum):
    """What a file is to its table."""

    METADATA = "metadata"
    MANIFEST_LIST = "manifest-list"
    MANIFEST = "manifest"
    DATA = "data"
    POSITION_DELETES = "position-deletes"
    EQUALITY_DELETES = "equality-deletes"
    DELETION_VECTORS = "deletion-vectors"
    STATISTICS = "statistics"
    PARTITION_STATISTICS = "partition-statistics"


class Fault(StrEnum):
    """What is wrong with a file that is needed."""

    MISSING = "MISSING"
    DAMAGED = "DAMAGED"
    UNREADABLE = "UNREADABLE"
    NO_ANSWER = "NO_ANSWER"
    """Nobody answers where it is: that is no matter of this file."""
    NO_SNAPSHOT = "NO_SNAPSHOT"
    """The file is sound, and does not list the snapshot that the catalog names."""


class Snapshots(StrEnum):
    """Which snapshots of a metadata file are needed."""

    LISTED = "listed"
    REFERENCED = "referenced"


class Needed(Struct, frozen=True):
    """One file: its location as it is written, and as `normalised` makes it."""

    location: str
    path: str
    kind: Kind


class Broken(Exception):
    """A file that cannot be followed; nobody knows what it would have led to. The message is one line that names the file."""

    def __init__(self, fault: Fault, location: str, message: str) -> None:
        # All arguments, so that it can be pickled.
        super().__init__(fault, location, message)
        self.fault = fault
        self.location = location
        self.message = message

    def __str__(self) -> str:
        return self.message


class Snapshot(Struct, frozen=True):
    """A snapshot of a table. Tables of version 1 may name their manifests right here instead of a manifest list."""

    id: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    named: bool = False
    """Whether a tag or branch inside the table names it."""


class TableFiles(Struct, frozen=True):
    """What a metadata file says about files. Of a view there are `location` and `bases` alone.

    `bases` are all folders that the table is said to write below, as they are written, its location first.
    """

    location: str
    bases: tuple[str, ...]
    current: int = NO_SNAPSHOT
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[tuple[int, Needed], ...] = ()
    """With the id of the snapshot that each is about."""

    def chosen(self, snapshot_id: int | None, wanted: Snapshots) -> list[Snapshot]:
        """The snapshots that are needed when the catalog names one (None or a negative number: the current one)."""
        if wanted is Snapshots.LISTED:
            return list(self.snapshots)
        id_ = self.current if snapshot_id is None or snapshot_id < 0 else snapshot_id
        return [snapshot for snapshot in self.snapshots if snapshot.named or snapshot.id == id_]

    def statistics_of(self, snapshots: Sequence[Snapshot], wanted: Snapshots) -> list[Needed]:
        """The statistics files that go with the snapshots which are needed."""
        ids = {snapshot.id for snapshot in snapshots}
        return [file for id_, file in self.statistics if id_ in ids or wanted is Snapshots.LISTED]

    def missing(self, snapshot_id: int | None, location: str) -> Broken | None:
        """The fault of a metadata file that does not list the snapshot which the catalog names."""
        if (
            snapshot_id is None
            or snapshot_id < 0
            or any(snapshot.id == snapshot_id for snapshot in self.snapshots)
        ):
            return None
        return Broken(
            Fault.NO_SNAPSHOT,
            location,
            f"{shown(location)}: does not list the snapshot {snapshot_id} that the catalog names",
        )


class Manifest(Struct, frozen=True):
    """A manifest as a manifest list names it; `length` in bytes, 0 where it is not told."""

    file: Needed
    length: int = 0


T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
Found: TypeAlias = Needed | Broken

_BASES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties that name folders beside the location of a table; the last two are those of older writers."""


def needed(location: str, kind: Kind, inside: str) -> Needed:
    """A file by its location in the file `inside`. Raises `Broken` for a location that is none."""
    try:
        return Needed(location, normalised(location), kind)
    except InvalidInput as error:
        raise Broken(
            Fault.DAMAGED,
            inside,
            f"{shown(inside)}: names a file that cannot be told: {error.message}",
        ) from None


def _read(files: Files, location: str) -> bytes:
    try:
        return files.read(location)
    except MissingFile as error:
        raise Broken(Fault.MISSING, location, error.message) from None
    except NoAnswer as error:
        raise Broken(Fault.NO_ANSWER, location, error.message) from None
    except (InvalidInput, StoreUnavailable) as error:
        raise Broken(Fault.UNREADABLE, location, error.message) from None


# -- the metadata file ----------------------------------------------------------------------------------------------------------------------


def read_table(files: Files, location: str) -> TableFiles:
    """What the metadata file of a table or view says about files; raises `Broken`. Cost: one read."""
    data = _read(files, location)
    try:
        document = parse_document(data, location)
    except InvalidInput as error:
        raise Broken(Fault.DAMAGED, location, error.message) from None
    try:
        return _table_files(document, location)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Broken(
            Fault.DAMAGED,
            location,
            f"{shown(location)}: is no sound Iceberg metadata file: {error!r}",
        ) from None


def _table_files(document: Document, location: str) -> TableFiles:
    properties = document.get("properties") or {}
    base = _text(document["location"])
    bases = (base, *(_text(properties[name]) for name in _BASES if name in properties))
    if "view-uuid" in document:
        return TableFiles(base, bases)
    named = {int(reference["snapshot-id"]) for reference in (document.get("refs") or {}).values()}
    snapshots = tuple(_snapshot(snapshot, named) for snapshot in document.get("snapshots") or ())
    current = document.get("current-snapshot-id")
    return TableFiles(
        base,
        bases,
        NO_SNAPSHOT if current is None else int(current),
        snapshots,
        tuple(_statistics(document, location)),
    )


def _snapshot(snapshot: Document, named: set[int]) -> Snapshot:
    id_ = int(snapshot["snapshot-id"])
    if snapshot.get("manifest-list") is not None:
        return Snapshot(id_, _text(snapshot["manifest-list"]), named=id_ in named)
    return Snapshot(id_, None, tuple(map(_text, snapshot["manifests"])), id_ in named)


def _statistics(document: Document, location: str) -> Iterator[tuple[int, Needed]]:
    for attribute, kind in (
        ("statistics", Kind.STATISTICS),
        ("partition-statistics", Kind.PARTITION_STATISTICS),
    ):
        for item in document.get(attribute) or ():
            yield int(item["snapshot-id"]), needed(_text(item["statistics-path"]), kind, location)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is no location")
    return value


# -- manifest lists and manifests -----------------------------------------------------------------------------------------------------------


def read_manifest_list(files: Files, location: str) -> list[Manifest]:
    """The manifests of a snapshot, of data and of deletes; raises `Broken`. Cost: one read."""

    def manifest(row: Row) -> Manifest:
        return Manifest(
            needed(_text(row["manifest_path"]), Kind.MANIFEST, location),
            row.get("manifest_length") or 0,
        )

    return _rows(
        _read(files, location),
        location,
        "manifest list",
        {"manifest_path": None, "manifest_length": None},
        manifest,
    )


def manifests_of(files: Files, snapshot: Snapshot, inside: str) -> list[Manifest]:
    """The manifests of a snapshot of the metadata file `inside`, whichever way it names them; raises `Broken`."""
    if snapshot.manifest_list is not None:
        return read_manifest_list(files, snapshot.manifest_list)
    return [Manifest(needed(path, Kind.MANIFEST, inside)) for path in snapshot.manifests]


_DELETED = 2
"""The status of an entry for a file that its snapshot has removed: no reader of that snapshot opens it."""
_OF_ENTRY: Mapping[str, Any] = {
    "status": None,
    "data_file": {"content": None, "file_path": None, "file_format": None},
}


def read_manifest(files: Files, manifest: Manifest) -> list[Needed]:
    """The files that a manifest adds or keeps, not those that it removes; raises `Broken`. Cost: one read."""
    location = manifest.file.location
    data = _read(files, location)
    if len(data) < manifest.length:
        raise Broken(
            Fault.DAMAGED,
            location,
            f"{shown(location)}: is cut off: {len(data)} of {manifest.length} bytes are there",
        )

    def file(row: Row) -> Needed | None:
        described = row["data_file"]
        return (
            None
            if row["status"] == _DELETED
            else needed(_text(described["file_path"]), _kind(described), location)
        )

    return [
        found for found in _rows(data, location, "manifest", _OF_ENTRY, file) if found is not None
    ]


def _kind(file: Row) -> Kind:
    content = file.get("content") or 0
    if content == 0:
        return Kind.DATA
    if str(file.get("file_format")).upper() == "PUFFIN":
        return Kind.DELETION_VECTORS
    return Kind.POSITION_DELETES if content == 1 else Kind.EQUALITY_DELETES


def _rows(
    data: bytes, location: str, what: str, wanted: Mapping[str, Any], make: Callable[[Row], T]
) -> list[T]:
    """The rows of an Avro file, read with the wanted fields alone: not to decode the others is half of the time."""
    try:
        written: Any = fastavro.reader(io.BytesIO(data)).writer_schema
        rows: Any = fastavro.reader(io.BytesIO(data), _projected(written, wanted))
        return [make(row) for row in rows]
    except Broken:
        raise
    except Exception as error:  # noqa: BLE001 - damaged bytes end in whatever the decoder stumbles over
        raise Broken(
            Fault.DAMAGED, location, f"{shown(location)}: is no sound {what}: {first_line(error)}"
        ) from None


def _projected(schema: Any, wanted: Mapping[str, Any]) -> Any:
    """A record with the wanted fields, those that it has; the names of records are the writer's."""
    fields = []
    for field in schema["fields"]:
        if field["name"] in wanted:
            inner = wanted[field["name"]]
            fields.append(
                {
                    "name": field["name"],
                    "type": field["type"] if inner is None else _projected(field["type"], inner),
                }
            )
    if not fields:
        raise ValueError(f"its records have none of the fields {', '.join(wanted)}")
    return {"type": "record", "name": schema["name"], "fields": fields}


# -- all of it --------------------------------------------------------------------------------------------------------------------------------


class Walker:
    """Follows metadata files down to the last data file. What several of them share, a manifest above all, is read and told once."""

    def __init__(self, files: Files, snapshots: Snapshots = Snapshots.LISTED) -> None:
        """Take what reads the files."""
        self._files = files
        self._wanted = snapshots
        self._done: dict[str, tuple[Broken, ...]] = {}
        """Manifest lists and manifests that have been followed, by path, with what is broken in them."""

    def remember(self, manifests: Iterable[str]) -> None:
        """Take these manifests, by path, as read and told: they are sound."""
        self._done.update(dict.fromkeys(manifests, ()))

    def follow(self, location: str, snapshot_id: int | None = None) -> Iterator[Found]:
        """The files that a content needs, without those told before; and each one that cannot be followed, also where that was told before.

        `snapshot_id` is the one that the catalog names; without it, or with a negative one, the current one. A view needs no more than its
        metadata file. Cost: one read for each file that is not a data file, none for those read before.
        """
        try:
            yield needed(location, Kind.METADATA, location)
            table = read_table(self._files, location)
        except Broken as broken:
            yield broken
            return
        yield from self.below(table, location, snapshot_id)

    def below(
        self, table: TableFiles, location: str, snapshot_id: int | None = None
    ) -> Iterator[Found]:
        """As `follow`, for a metadata file that is already read; its own location is not told."""
        if (missing := table.missing(snapshot_id, location)) is not None:
            yield missing
        snapshots = table.chosen(snapshot_id, self._wanted)
        yield from table.statistics_of(snapshots, self._wanted)
        told: set[str] = set()
        for snapshot in snapshots:
            for found in self._snapshot(snapshot, location):
                if not isinstance(found, Broken):
                    yield found
                elif found.location not in told:
                    told.add(found.location)
                    yield found

    def _snapshot(self, snapshot: Snapshot, inside: str) -> Iterator[Found]:
        try:
            if snapshot.manifest_list is None:
                yield from self._manifests(manifests_of(self._files, snapshot, inside))
                return
            file = needed(snapshot.manifest_list, Kind.MANIFEST_LIST, inside)
        except Broken as broken:
            yield broken
            return
        if file.path in self._done:
            yield from self._done[file.path]
            return
        yield file
        broken_here = []
        for found in self._listed(snapshot.manifest_list):
            if isinstance(found, Broken):
                broken_here.append(found)
            yield found
        self._done[file.path] = tuple(broken_here)

    def _listed(self, location: str) -> Iterator[Found]:
        try:
            manifests = read_manifest_list(self._files, location)
        except Broken as broken:
            yield broken
            return
        yield from self._manifests(manifests)

    def _manifests(self, manifests: Sequence[Manifest]) -> Iterator[Found]:
        for manifest in manifests:
            path = manifest.file.path
            if path in self._done:
                yield from self._done[path]
                continue
            yield manifest.file
            try:
                yield from read_manifest(self._files, manifest)
                self._done[path] = ()
            except Broken as broken:
                self._done[path] = (broken,)
                yield broken
