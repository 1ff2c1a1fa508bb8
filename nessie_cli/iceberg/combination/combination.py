"""Compares three states of a table, and decides how the sides combine.

Reads manifest lists and those manifests that the three states do not share; no data file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT, normalized
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.decision import FileConflict, FileMerge, merge_files
from nessie_cli.iceberg.combination.definitions import (
    DefinitionConflict,
    DefinitionMerge,
    merge_definitions,
)
from nessie_cli.iceberg.combination.manifests import (
    Manifest,
    ManifestList,
    Status,
    read_list,
    read_manifest,
)
from nessie_cli.iceberg.combination.states import (
    FileContent,
    Identity,
    Row,
    SnapshotChanges,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.files import MissingFile

_ISOLATION = (
    "write.delete.isolation-level",
    "write.update.isolation-level",
    "write.merge.isolation-level",
)
_FIRST_ROW_ID = "first_row_id"
Read = Callable[[str], bytes]
"""Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""


class Combination(Struct, frozen=True):
    """How two sides of a table combine. With conflicts, the rest is not final.

    `ours` is the normalized metadata of ours, `listed` its manifests, and `manifests` are all that
    were read, by path. `replaces_only` is whether theirs only rewrote rows.
    """

    ours: Document
    theirs: Document
    listed: ManifestList
    manifests: Mapping[str, Manifest]
    files: FileMerge
    definitions: DefinitionMerge
    replaces_only: bool = False

    @property
    def conflicts(self) -> list[FileConflict | DefinitionConflict]:
        """The reasons why the sides do not combine."""
        return [*self.definitions.conflicts, *self.files.conflicts]


def combine(base: Document, ours: Document, theirs: Document, read: Read) -> Combination:
    """Combines three states of a table: metadata in the state that each content names.

    Raises `InvalidInput` or `StoreUnavailable` if a file is missing, damaged or cannot be read.
    """
    documents = [normalized(document) for document in (base, ours, theirs)]
    reader = _Reader(read)
    lists = [reader.list_of(_snapshot(document)) for document in documents]
    shared = set.intersection(*(set(each.rows) for each in lists))
    files = [_files(reader, listed, shared) for listed in lists]
    origin = _Base(frozenset(_line(documents[0])), files[0])
    states = [
        _state(reader, document, live, origin)
        for document, live in zip(documents, files, strict=True)
    ]
    merged = merge_files(states[0], states[1], states[2], states[0].last_sequence)
    history = states[2].history
    return Combination(
        documents[1],
        documents[2],
        lists[1],
        reader.manifests,
        merged,
        merge_definitions(*documents),
        bool(history) and all(changes.operation == "replace" for changes in history or ()),
    )


class _Reader:
    """Reads manifest lists and manifests, each once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lists: dict[int, ManifestList] = {}
        self.manifests: dict[str, Manifest] = {}

    def list_of(self, snapshot: Document | None) -> ManifestList:
        """Returns the manifests of a snapshot."""
        if snapshot is None:
            return ManifestList({}, {})
        id_ = snapshot["snapshot-id"]
        if id_ not in self._lists:
            location = snapshot.get("manifest-list")
            if not location:
                raise InvalidInput(
                    f"snapshot {id_} of format version 1 has no manifest list",
                    hint="rewrite its manifests, or upgrade the table",
                )
            self._lists[id_] = read_list(self._read(location), location)
        return self._lists[id_]

    def manifest(self, listed: Row) -> Manifest:
        """Returns a manifest of a manifest list."""
        path = str(listed["manifest_path"])
        manifest = self.manifests.get(path)
        # The first commit after an upgrade gives ids to rows in earlier manifests.
        if manifest is None or manifest.listed.get(_FIRST_ROW_ID) != listed.get(_FIRST_ROW_ID):
            self.manifests[path] = manifest = read_manifest(self._read(path), listed)
        return manifest


def _state(
    reader: _Reader, document: Document, files: Mapping[Identity, TableFile], base: _Base
) -> TableState:
    try:
        history = tuple(_history(reader, document, base))
    except (LookupError, MissingFile):
        history = None
    properties = document["properties"]
    return TableState(
        document["format-version"],
        document["last-sequence-number"],
        files,
        document.get("next-row-id") or 0,
        history,
        any(properties.get(name) == "serializable" for name in _ISOLATION),
    )


def _files(reader: _Reader, listed: ManifestList, shared: set[str]) -> dict[Identity, TableFile]:
    """Returns the live files of a state, without those in shared manifests."""
    return {
        entry.file.identity: entry.file
        for path, row in listed.rows.items()
        if path not in shared
        for entry in reader.manifest(row).entries
        if entry.status is not Status.DELETED
    }


class _Base(NamedTuple):
    """The base: its snapshots, from the current one back, and its files."""

    line: frozenset[int]
    files: Mapping[Identity, TableFile]


def _line(document: Document) -> list[int]:
    """Returns the current snapshot and its ancestors, newest first, as far as they are listed."""
    snapshots = by_id(document["snapshots"], "snapshot-id")
    id_ = document["current-snapshot-id"]
    line: list[int] = []
    while id_ in snapshots:
        line.append(id_)
        id_ = snapshots[id_].get("parent-snapshot-id")
    return line


def _history(reader: _Reader, document: Document, base: _Base) -> Iterator[SnapshotChanges]:
    """Yields the changes of a side that the base does not have, by snapshots, oldest first.

    These are the snapshots since the last one that both have. If the sides were combined before,
    the base is a state of theirs, and some files of ours are in it. Raises `LookupError` if there
    is none: a snapshot has expired, or the table was replaced.
    """
    line = _line(document)
    own = list(takewhile(lambda id_: id_ not in base.line, line))
    snapshots = by_id(document["snapshots"], "snapshot-id")
    begins = bool(own) and snapshots[own[-1]].get("parent-snapshot-id") is None
    if own and own == line and (base.line or not begins):
        raise LookupError(own[-1])
    for id_ in reversed(own):
        changes = _changes(reader, snapshots[id_])
        added = [path for path in changes.added if Identity(path) not in base.files]
        yield structs.replace(changes, added=added)


def _changes(reader: _Reader, snapshot: Document) -> SnapshotChanges:
    id_ = snapshot["snapshot-id"]
    added: list[str] = []
    removed: list[str] = []
    deleted_in: list[str] = []
    row_ids: dict[str, int | None] = {}
    removed_deletes: list[Identity] = []
    has_wide_deletes = False
    for row in reader.list_of(snapshot).rows.values():
        if row["added_snapshot_id"] != id_:
            continue
        for entry in reader.manifest(row).entries:
            file = entry.file
            if entry.status is Status.EXISTING or file.snapshot_id != id_:
                continue
            if file.is_data and entry.status is Status.ADDED:
                added.append(file.path)
            elif file.is_data:
                removed.append(file.path)
                row_ids[file.path] = file.first_row_id
            elif entry.status is Status.DELETED:
                removed_deletes.append(file.identity)
            elif file.content is FileContent.POSITION_DELETES and file.referenced is not None:
                deleted_in.append(file.referenced)
            else:
                has_wide_deletes = True
    operation = (snapshot.get("summary") or {}).get("operation", "overwrite")
    return SnapshotChanges(
        operation, added, removed, deleted_in, has_wide_deletes, row_ids, removed_deletes
    )


def _snapshot(document: Document) -> Document | None:
    """Returns the current snapshot."""
    id_ = document["current-snapshot-id"]
    if id_ == NO_SNAPSHOT:
        return None
    snapshot: Any = by_id(document["snapshots"], "snapshot-id").get(id_)
    if snapshot is None:
        raise InvalidInput(f"the metadata does not list its current snapshot {id_}")
    return dict(snapshot)
