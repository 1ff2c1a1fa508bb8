"""Finds all files that a table or view references, from its metadata file down.

These are the files that a reader of a live snapshot opens: manifest lists, manifests, data files,
delete files, statistics. Two decisions:

* The *metadata log* of a table, its earlier metadata files, does not count: no reader opens them.
  Each metadata file that can be read is in a commit of the catalog, which makes it live.
* By default, every snapshot in a metadata file counts, not only the catalog's snapshot. Engines
  use that list for time travel, so a table with a listed snapshot without files is damaged.
  `SnapshotScope.REFERENCED` counts the catalog's snapshot and those of the table's tags and
  branches.

https://iceberg.apache.org/spec/#manifests and https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.avro import read_avro
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.files import Files, MissingFile, NoAnswer, first_line
from nessie_cli.iceberg.locations import PATH_PROPERTIES, normalised, shown
from nessie_cli.iceberg.metadata import Document, parse_document


class FileKind(StrEnum):
    """The kind of a file."""

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
    """The kind of a fault in a referenced file."""

    MISSING = "MISSING"
    DAMAGED = "DAMAGED"
    UNREADABLE = "UNREADABLE"
    NO_ANSWER = "NO_ANSWER"
    """Its file system does not answer. The file may be intact."""
    NO_SNAPSHOT = "NO_SNAPSHOT"
    """The metadata file is valid, but does not list the catalog's snapshot."""


class SnapshotScope(StrEnum):
    """Which snapshots of a metadata file count."""

    LISTED = "listed"
    REFERENCED = "referenced"


class ReferencedFile(Struct, frozen=True):
    """A file: its location as written, and `path`, the normal form of it.

    `size` is in bytes, as the file that names it says; 0 if that does not say.
    """

    location: str
    path: str
    kind: FileKind
    size: int = 0


class BrokenFile(Exception):
    """A file that cannot be read, so that the files it references are unknown.

    The message is one line that names the file.
    """

    def __init__(self, fault: Fault, location: str, message: str) -> None:
        # All arguments are passed on, so that the exception can be pickled.
        super().__init__(fault, location, message)
        self.fault = fault
        self.location = location
        self.message = message

    def __str__(self) -> str:
        return self.message


class Snapshot(Struct, frozen=True):
    """A snapshot of a table. Format version 1 may list manifests instead of a manifest list."""

    id: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    named: bool = False
    """Whether a tag or branch of the table points to it."""


class TableFiles(Struct, frozen=True):
    """The files in a metadata file. A view has only `location` and `bases`.

    `bases` are the folders that the table writes to, as written, beginning with its location.
    """

    location: str
    bases: tuple[str, ...]
    current: int = NO_SNAPSHOT
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[tuple[int, ReferencedFile], ...] = ()
    """Pairs of a snapshot id and a statistics file."""

    def chosen(self, snapshot_id: int | None, scope: SnapshotScope) -> list[Snapshot]:
        """Returns the snapshots that count. `snapshot_id` is the catalog's.

        None or a negative number stands for the current snapshot.
        """
        if scope is SnapshotScope.LISTED:
            return list(self.snapshots)
        id_ = self.current if snapshot_id is None or snapshot_id < 0 else snapshot_id
        return [snapshot for snapshot in self.snapshots if snapshot.named or snapshot.id == id_]

    def statistics_of(
        self, snapshots: Sequence[Snapshot], scope: SnapshotScope
    ) -> list[ReferencedFile]:
        """Returns the statistics files of snapshots."""
        ids = {snapshot.id for snapshot in snapshots}
        return [
            file for id_, file in self.statistics if id_ in ids or scope is SnapshotScope.LISTED
        ]

    def missing(self, snapshot_id: int | None, location: str) -> BrokenFile | None:
        """Returns the fault of a metadata file that does not list the catalog's snapshot."""
        if (
            snapshot_id is None
            or snapshot_id < 0
            or any(snapshot.id == snapshot_id for snapshot in self.snapshots)
        ):
            return None
        return BrokenFile(
            Fault.NO_SNAPSHOT,
            location,
            f"{shown(location)} does not list the catalog's snapshot {snapshot_id}",
        )


class Manifest(Struct, frozen=True):
    """A manifest in a manifest list. `length` is in bytes, 0 if it is unknown.

    `spec_id` is its partition spec, None if it is unknown.
    """

    file: ReferencedFile
    length: int = 0
    spec_id: int | None = None


T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
Found: TypeAlias = ReferencedFile | BrokenFile


def needed(location: str, kind: FileKind, inside: str, size: int = 0) -> ReferencedFile:
    """Returns a file by its location in the file `inside`. Raises `BrokenFile`."""
    try:
        return ReferencedFile(location, normalised(location), kind, size)
    except InvalidInput as error:
        raise BrokenFile(
            Fault.DAMAGED,
            inside,
            f"{shown(inside)} contains an invalid location: {error.message}",
        ) from None


def _read(files: Files, location: str) -> bytes:
    try:
        return files.read(location)
    except MissingFile as error:
        raise BrokenFile(Fault.MISSING, location, error.message) from None
    except NoAnswer as error:
        raise BrokenFile(Fault.NO_ANSWER, location, error.message) from None
    except (InvalidInput, StoreUnavailable) as error:
        raise BrokenFile(Fault.UNREADABLE, location, error.message) from None


# -- metadata files -------------------------------------------------------------------------------


def read_table(files: Files, location: str) -> TableFiles:
    """Returns the files in a metadata file. Raises `BrokenFile`. Cost: one read."""
    data = _read(files, location)
    try:
        document = parse_document(data, location)
    except InvalidInput as error:
        raise BrokenFile(Fault.DAMAGED, location, error.message) from None
    return files_in(document, location)


def files_in(document: Document, location: str) -> TableFiles:
    """Returns the files in metadata of the file `location`. Raises `BrokenFile`."""
    try:
        return _table_files(document, location)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BrokenFile(
            Fault.DAMAGED,
            location,
            f"{shown(location)} is not valid Iceberg metadata: {error!r}",
        ) from None


def _table_files(document: Document, location: str) -> TableFiles:
    properties = document.get("properties") or {}
    base = _text(document["location"])
    bases = (base, *(_text(properties[name]) for name in PATH_PROPERTIES if name in properties))
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


def _statistics(document: Document, location: str) -> Iterator[tuple[int, ReferencedFile]]:
    for attribute, kind in (
        ("statistics", FileKind.STATISTICS),
        ("partition-statistics", FileKind.PARTITION_STATISTICS),
    ):
        for item in document.get(attribute) or ():
            file = needed(
                _text(item["statistics-path"]), kind, location, item.get("file-size-in-bytes") or 0
            )
            yield int(item["snapshot-id"]), file


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is not a location")
    return value


# -- manifest lists and manifests -----------------------------------------------------------------


def read_manifest_list(files: Files, location: str) -> list[Manifest]:
    """Returns the manifests of a snapshot. Raises `BrokenFile`. Cost: one read."""

    def manifest(row: Row) -> Manifest:
        length = row.get("manifest_length") or 0
        return Manifest(
            needed(_text(row["manifest_path"]), FileKind.MANIFEST, location, length),
            length,
            row.get("partition_spec_id"),
        )

    return _rows(
        _read(files, location),
        location,
        "manifest list",
        {"manifest_path": None, "manifest_length": None, "partition_spec_id": None},
        manifest,
    )


def manifests_of(files: Files, snapshot: Snapshot, inside: str) -> list[Manifest]:
    """Returns the manifests of a snapshot in a metadata file. Raises `BrokenFile`."""
    if snapshot.manifest_list is not None:
        return read_manifest_list(files, snapshot.manifest_list)
    return [Manifest(needed(path, FileKind.MANIFEST, inside)) for path in snapshot.manifests]


_DELETED = 2
"""The status of an entry whose file was removed. No reader of the snapshot opens the file."""
_OF_ENTRY: Mapping[str, Any] = {
    "status": None,
    "data_file": {
        "content": None,
        "file_path": None,
        "file_format": None,
        "file_size_in_bytes": None,
    },
}


def read_manifest(files: Files, manifest: Manifest) -> list[ReferencedFile]:
    """Returns the files that a manifest adds or keeps, without those that it removes.

    Raises `BrokenFile`. Cost: one read.
    """
    location = manifest.file.location
    data = _read(files, location)
    if len(data) < manifest.length:
        raise BrokenFile(
            Fault.DAMAGED,
            location,
            f"{shown(location)} is truncated to {len(data)} of {manifest.length} bytes",
        )

    def file(row: Row) -> ReferencedFile | None:
        described = row["data_file"]
        return (
            None
            if row["status"] == _DELETED
            else needed(
                _text(described["file_path"]),
                _kind(described),
                location,
                described.get("file_size_in_bytes") or 0,
            )
        )

    return [
        referenced
        for referenced in _rows(data, location, "manifest", _OF_ENTRY, file)
        if referenced is not None
    ]


def _kind(file: Row) -> FileKind:
    content = file.get("content") or 0
    if content == 0:
        return FileKind.DATA
    if str(file.get("file_format")).upper() == "PUFFIN":
        return FileKind.DELETION_VECTORS
    return FileKind.POSITION_DELETES if content == 1 else FileKind.EQUALITY_DELETES


def _rows(
    data: bytes,
    location: str,
    file_type: str,
    projection: Mapping[str, Any],
    make: Callable[[Row], T],
) -> list[T]:
    """Returns the projected rows of an Avro file. Decoding fewer fields halves the time."""
    try:
        read = read_avro(data, projected=lambda schema: _projected(schema, projection))
        return [make(row) for row in read.rows]
    except BrokenFile:
        raise
    except Exception as error:  # noqa: BLE001 - damaged bytes raise any error in the decoder
        raise BrokenFile(
            Fault.DAMAGED,
            location,
            f"{shown(location)} is not a valid {file_type}: {first_line(error)}",
        ) from None


def _projected(schema: Any, projection: Mapping[str, Any]) -> Any:
    """Returns a record schema with the fields of `projection` only. Records keep their names."""
    fields = []
    for field in schema["fields"]:
        if field["name"] in projection:
            inner = projection[field["name"]]
            fields.append(
                {
                    "name": field["name"],
                    "type": field["type"] if inner is None else _projected(field["type"], inner),
                }
            )
    if not fields:
        raise ValueError(f"the records have none of the fields {', '.join(projection)}")
    return {"type": "record", "name": schema["name"], "fields": fields}


# -- the walk -------------------------------------------------------------------------------------


class Walker:
    """Walks from metadata files down to data files. Reads and yields shared files once."""

    def __init__(self, files: Files, snapshots: SnapshotScope = SnapshotScope.LISTED) -> None:
        """Takes the reader of the files."""
        self._files = files
        self._scope = snapshots
        self._done: dict[str, tuple[BrokenFile, ...]] = {}
        """Visited manifest lists and manifests by path, with the broken files below them."""

    def remember(self, manifests: Iterable[str]) -> None:
        """Marks manifests, by path, as visited and valid."""
        self._done.update(dict.fromkeys(manifests, ()))

    def follow(self, location: str, snapshot_id: int | None = None) -> Iterator[Found]:
        """Yields the files of a content that were not yielded before, and all broken files.

        `snapshot_id` is the catalog's snapshot. None or a negative number stands for the current
        one. A view has only its metadata file. Cost: one read for each file that is not a data
        file, none for a file that was read before.
        """
        try:
            yield needed(location, FileKind.METADATA, location)
            table = read_table(self._files, location)
        except BrokenFile as broken:
            yield broken
            return
        yield from self.below(table, location, snapshot_id)

    def below(
        self, table: TableFiles, location: str, snapshot_id: int | None = None
    ) -> Iterator[Found]:
        """Like `follow` for a metadata file that has been read. Does not yield that file."""
        if (missing := table.missing(snapshot_id, location)) is not None:
            yield missing
        snapshots = table.chosen(snapshot_id, self._scope)
        yield from table.statistics_of(snapshots, self._scope)
        yielded: set[str] = set()
        for snapshot in snapshots:
            for file in self._snapshot(snapshot, location):
                if not isinstance(file, BrokenFile):
                    yield file
                elif file.location not in yielded:
                    yielded.add(file.location)
                    yield file

    def _snapshot(self, snapshot: Snapshot, inside: str) -> Iterator[Found]:
        try:
            if snapshot.manifest_list is None:
                yield from self._manifests(manifests_of(self._files, snapshot, inside))
                return
            file = needed(snapshot.manifest_list, FileKind.MANIFEST_LIST, inside)
        except BrokenFile as broken:
            yield broken
            return
        if file.path in self._done:
            yield from self._done[file.path]
            return
        yield file
        broken_here = []
        for entry in self._listed(snapshot.manifest_list):
            if isinstance(entry, BrokenFile):
                broken_here.append(entry)
            yield entry
        self._done[file.path] = tuple(broken_here)

    def _listed(self, location: str) -> Iterator[Found]:
        try:
            manifests = read_manifest_list(self._files, location)
        except BrokenFile as broken:
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
            except BrokenFile as broken:
                self._done[path] = (broken,)
                yield broken
