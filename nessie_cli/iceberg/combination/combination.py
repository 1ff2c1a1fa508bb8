"""Compares three states of a table, and decides how the sides combine.

Reads manifest lists and those manifests that the three states do not share; no data file. Reads
deletion vectors of data files in which both sides deleted rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import USUAL, AvroLimits
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT, normalized
from nessie_cli.iceberg.builder.schemas import identifiers
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.decision import FileConflict, FileMerge, merge_files
from nessie_cli.iceberg.combination.definitions import (
    DefinitionConflict,
    DefinitionMerge,
    merge_definitions,
)
from nessie_cli.iceberg.combination.engines import Engine, LocalEngine, Read
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.identifiers import files_with_same_keys
from nessie_cli.iceberg.combination.manifests import (
    Entry,
    ManifestList,
    Reading,
    Status,
    read_entries,
    read_list,
)
from nessie_cli.iceberg.combination.required import required_columns, required_conflict
from nessie_cli.iceberg.combination.states import (
    COMBINED_BY,
    GONE,
    FileContent,
    Identity,
    Row,
    SnapshotChanges,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.combination.unions import UnitedVector, read_vectors, unite
from nessie_cli.iceberg.files import MissingFile

_ISOLATION = (
    "write.delete.isolation-level",
    "write.update.isolation-level",
    "write.merge.isolation-level",
)
_FIRST_ROW_ID = "first_row_id"


class Combination(Struct, frozen=True):
    """How two sides of a table combine. With conflicts, the rest is not final.

    `ours` is the normalized metadata of ours, `listed` its manifests, `sources` are all that were
    read, by path, and `engine` reads them again. `replaces_only` is whether theirs only rewrote
    rows. `same_keys` are data files of theirs whose rows may have the identifiers of rows that ours
    added. `vectors` are to be written, too.
    """

    ours: Document
    theirs: Document
    listed: ManifestList
    sources: Mapping[str, Reading]
    engine: Engine
    files: FileMerge
    definitions: DefinitionMerge
    replaces_only: bool = False
    same_keys: Sequence[TableFile] = ()
    vectors: Sequence[UnitedVector] = ()

    @property
    def notes(self) -> list[str]:
        """What the result does not contain, and what it may contain twice."""
        text = (
            f"both sides added rows whose identifiers may be equal (in {len(self.same_keys)} of the"
            " files of theirs): the table may contain them twice"
        )
        skew = "one side changed rows that may depend on changes of the other side (write skew)"
        return [
            *([text] if self.same_keys else []),
            *([skew] if self.files.may_skew else []),
        ]

    @property
    def conflicts(self) -> list[FileConflict | DefinitionConflict]:
        """The reasons why the sides do not combine."""
        return [*self.definitions.conflicts, *self.files.conflicts]


def combine(
    base: Document,
    ours: Document,
    theirs: Document,
    read: Read,
    *,
    is_serializable: bool = False,
    refuses_same_keys: bool = False,
    limits: AvroLimits = USUAL,
    engine: Engine | None = None,
) -> Combination:
    """Combines three states of a table: metadata in the state that each content names.

    The base can be a state of any branch: that before a picked commit, for example. With
    `is_serializable`, a table that sets no isolation is serializable. With `refuses_same_keys`,
    rows that both sides added with equal identifiers are a conflict. The `engine` reads and encodes
    manifests, by default in this process. Raises `InvalidInput` or
    `StoreUnavailable` if a file is missing, damaged or cannot be read, or if a file exceeds the
    `limits`, or all entries together.
    """
    documents = [normalized(document) for document in (base, ours, theirs)]
    engine = engine or LocalEngine(read)
    reader = _Reader(read, engine, _deciding_columns(documents), limits)
    lists = [reader.list_of(_snapshot(document)) for document in documents]
    shared = set.intersection(*(set(each.rows) for each in lists))
    files = _files(reader, lists, shared)
    origin = _Base(frozenset(_line(documents[0])), files[0])
    states = [
        _state(reader, document, live, origin)
        for document, live in zip(documents, files, strict=True)
    ]
    if is_serializable and not any(name in documents[0]["properties"] for name in _ISOLATION):
        states[0] = structs.replace(states[0], is_serializable=True)
    fork = _fork_sequence(documents[1], documents[2])
    merged = merge_files(
        states[0],
        states[1],
        states[2],
        fork,
        has_equality_deletes=_has_equality_deletes(states, lists, shared, fork),
        scope=EqualityScope([schema for side in documents for schema in side["schemas"]]),
    )
    merged = _without_nulls(documents, states, merged)
    same_keys = _files_with_same_keys(documents[1], states, merged)
    if same_keys and refuses_same_keys:
        reason = "both sides added rows whose identifiers may be equal"
        merged = structs.replace(merged, conflicts=[FileConflict(reason, same_keys)])
    definitions = merge_definitions(*documents)
    vectors: list[UnitedVector] = []
    if not (merged.conflicts or definitions.conflicts):
        merged, vectors = unite(merged, read_vectors(merged.unions, read))
    history = states[2].history
    return Combination(
        documents[1],
        documents[2],
        lists[1],
        reader.sources,
        engine,
        merged,
        definitions,
        bool(history) and all(changes.operation == "replace" for changes in history or ()),
        same_keys,
        vectors,
    )


def _without_nulls(
    documents: Sequence[Document], states: Sequence[TableState], merged: FileMerge
) -> FileMerge:
    """Returns the outcome, with a conflict for rows without values in required columns."""
    base, ours, theirs = documents
    here = [f for id_, f in states[1].files.items() if id_ not in states[0].files and f.is_data]
    there = [each.file for each in merged.added if each.file.is_data]
    conflicts = [required_conflict(base, theirs, here), required_conflict(base, ours, there)]
    new = [conflict for conflict in conflicts if conflict is not None]
    return structs.replace(merged, conflicts=[*merged.conflicts, *new]) if new else merged


def _files_with_same_keys(
    ours: Document, states: Sequence[TableState], merged: FileMerge
) -> list[TableFile]:
    """Returns the added data files of theirs with keys that files which ours added may have."""
    compacted = {
        path
        for state in states
        for changes in state.history or ()
        if changes.operation == "replace"
        for path in changes.added
    }
    before, here = states[0].files, states[1].files
    added = [
        [f for id_, f in here.items() if id_ not in before and f.is_data],
        [each.file for each in merged.added if each.file.is_data],
    ]
    rows = [[f for f in files if f.path not in compacted] for files in added]
    schema = by_id(ours["schemas"], "schema-id")[ours["current-schema-id"]]
    return files_with_same_keys(schema, *rows)


def _deciding_columns(documents: Sequence[Document]) -> frozenset[int]:
    """Returns the columns whose statistics the decision can depend on."""
    base, ours, theirs = documents
    schema = by_id(ours["schemas"], "schema-id")[ours["current-schema-id"]]
    required = (required_columns(base, side) for side in (ours, theirs))
    return frozenset(identifiers(schema)).union(*required)


class _Reader:
    """Reads manifest lists and manifests, each once."""

    def __init__(
        self, read: Read, engine: Engine, columns: frozenset[int], limits: AvroLimits
    ) -> None:
        self._read = read
        self._engine = engine
        self._columns = columns
        self._limits = limits
        self._count = 0
        self._lists: dict[int, ManifestList] = {}
        self._entries: dict[str, list[Entry]] = {}
        self.sources: dict[str, Reading] = {}

    def need_columns(self, ids: Iterable[int]) -> None:
        """Keeps the statistics of further columns in the manifests that are read from now on."""
        self._columns = self._columns.union(ids)

    def list_of(self, snapshot: Document | None) -> ManifestList:
        """Returns the manifests of a snapshot."""
        if snapshot is None:
            return ManifestList({}, {})
        id_ = snapshot["snapshot-id"]
        if id_ not in self._lists:
            location = _list_location(snapshot)
            self._lists[id_] = read_list(self._read(location), location, limits=self._limits)
        return self._lists[id_]

    def added_by(self, snapshot: Document) -> Collection[Row]:
        """Returns the manifests that a snapshot added, without the others in its manifest list."""
        id_ = snapshot["snapshot-id"]
        if id_ in self._lists:
            rows = self._lists[id_].rows.values()
            return [row for row in rows if row["added_snapshot_id"] == id_]
        location = _list_location(snapshot)
        data = self._read(location)
        return read_list(data, location, added_by=id_, limits=self._limits).rows.values()

    def entries(self, listed: Sequence[Row]) -> Iterator[Entry]:
        """Yields the entries of some manifests of one manifest list."""
        jobs = [
            Reading(row, self._columns, self._limits) for row in listed if not self._is_read(row)
        ]
        for job, entries in zip(jobs, self._engine.map(read_entries, jobs), strict=True):
            self.sources[job.path] = job
            self._entries[job.path] = entries
            self._count += len(entries)
            if self._count > self._limits.rows:
                raise InvalidInput(
                    f"the manifests that differ have more than {self._limits.rows:,} entries",
                    hint="rewrite the manifests, or merge with access to the files",
                )
        for row in listed:
            yield from self._entries[str(row["manifest_path"])]

    def _is_read(self, listed: Row) -> bool:
        # The first commit after an upgrade gives ids to rows in earlier manifests.
        source = self.sources.get(str(listed["manifest_path"]))
        return source is not None and source.listed.get(_FIRST_ROW_ID) == listed.get(_FIRST_ROW_ID)


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


def _files(
    reader: _Reader, lists: Sequence[ManifestList], shared: set[str]
) -> list[dict[Identity, TableFile]]:
    """Returns the live files of each state, without those in shared manifests."""
    states = [[row for path, row in listed.rows.items() if path not in shared] for listed in lists]
    # Deletes first: the columns that equality deletes name decide about data files.
    for rows in states:
        for entry in reader.entries([row for row in rows if row.get("content")]):
            reader.need_columns(entry.file.row.get("equality_ids") or ())
    return [
        {
            entry.file.identity: entry.file
            for entry in reader.entries(rows)
            if entry.status is not Status.DELETED
        }
        for rows in states
    ]


def _has_equality_deletes(
    states: Sequence[TableState],
    lists: Sequence[ManifestList],
    shared: Collection[str],
    fork_sequence: int,
) -> bool:
    """Returns whether a state may have equality deletes that are not older than the fork."""
    return any(
        file.content is FileContent.EQUALITY_DELETES
        for state in states
        for file in state.files.values()
    ) or any(
        row.get("content") and (row.get("sequence_number") or 0) > fork_sequence
        for path, row in lists[0].rows.items()
        if path in shared
    )


def _fork_sequence(ours: Document, theirs: Document) -> int:
    """Returns the last sequence number that means the same on both sides.

    That is the one of the newest snapshot that both list, as far as none has expired.
    """
    shared = set.intersection(
        *(
            {(each["snapshot-id"], each.get("sequence-number") or 0) for each in side["snapshots"]}
            for side in (ours, theirs)
        )
    )
    return max((number for _, number in shared), default=0)


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
    for entry in reader.entries(list(reader.added_by(snapshot))):
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
    summary = snapshot.get("summary") or {}
    return SnapshotChanges(
        summary.get("operation", "overwrite"),
        added,
        removed,
        deleted_in,
        has_wide_deletes,
        row_ids,
        removed_deletes,
        str(summary.get(GONE, "")).split(),
        id_,
        COMBINED_BY in summary,
    )


def _list_location(snapshot: Document) -> str:
    location: str | None = snapshot.get("manifest-list")
    if not location:
        raise InvalidInput(
            f"snapshot {snapshot['snapshot-id']} of format version 1 has no manifest list",
            hint="rewrite its manifests, or upgrade the table",
        )
    return location


def _snapshot(document: Document) -> Document | None:
    """Returns the current snapshot."""
    id_ = document["current-snapshot-id"]
    if id_ == NO_SNAPSHOT:
        return None
    snapshot: Any = by_id(document["snapshots"], "snapshot-id").get(id_)
    if snapshot is None:
        raise InvalidInput(f"the metadata does not list its current snapshot {id_}")
    return dict(snapshot)
