"""Reads what the manifests of a table say about its files and snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import AvroLimits, memory_of
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.engines import Engine, Read
from nessie_cli.iceberg.combination.manifests import (
    WITHOUT_SERVER,
    Entry,
    ManifestList,
    Reading,
    Status,
    read_entries,
    read_list,
)
from nessie_cli.iceberg.combination.states import (
    COMBINED_BY,
    GONE,
    FileContent,
    Identity,
    Row,
    SnapshotChanges,
    TableFile,
)
from nessie_cli.iceberg.expiration.retention import line_of

_FIRST_ROW_ID = "first_row_id"


class ManifestReader:
    """Reads manifest lists and manifests, each once."""

    def __init__(
        self, read: Read, engine: Engine, columns: frozenset[int], limits: AvroLimits
    ) -> None:
        self._read = read
        self._engine = engine
        self._columns = columns
        self._limits = limits
        self._count = self._memory = 0
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
            listed = read_list(self._read(location), location, limits=self._limits)
            self._keep(listed.rows.values())
            self._lists[id_] = listed
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
                    hint=WITHOUT_SERVER,
                )
            self._keep(entry.file.row for entry in entries)
        for row in listed:
            yield from self._entries[str(row["manifest_path"])]

    def _keep(self, rows: Iterable[Row]) -> None:
        """Raises `InvalidInput` if the rows that this reader keeps take too much memory."""
        most = self._limits.memory
        if most is not None:
            self._memory += sum(map(memory_of, rows))
            if self._memory > most:
                raise InvalidInput(
                    f"the manifests that differ take more than {most // 2**20} MiB of memory",
                    hint=WITHOUT_SERVER,
                )

    def _is_read(self, listed: Row) -> bool:
        # The first commit after an upgrade gives ids to rows in earlier manifests.
        source = self.sources.get(str(listed["manifest_path"]))
        return source is not None and source.listed.get(_FIRST_ROW_ID) == listed.get(_FIRST_ROW_ID)


def live_files(
    reader: ManifestReader, lists: Sequence[ManifestList], shared: set[str]
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


def history_of(
    reader: ManifestReader,
    document: Document,
    line: Collection[int],
    files: Mapping[Identity, TableFile],
) -> Iterator[SnapshotChanges]:
    """Yields the changes of a side that the base does not have, by snapshots, oldest first.

    These are the snapshots since the last one that both have. If the sides were combined before,
    the base is a state of theirs, and some files of ours are in it. Raises `LookupError` if there
    is none: a snapshot has expired, or the table was replaced.
    """
    of_side = line_of(document)
    own = list(takewhile(lambda id_: id_ not in line, of_side))
    snapshots = by_id(document["snapshots"], "snapshot-id")
    begins = bool(own) and snapshots[own[-1]].get("parent-snapshot-id") is None
    # The table was empty when the sides parted, and one of these snapshots has combined them since:
    # a table that was replaced later has none.
    was_combined = any(COMBINED_BY in (snapshots[id_].get("summary") or {}) for id_ in own)
    if own and own == of_side and not (begins and (was_combined or not line)):
        raise LookupError(own[-1])
    for id_ in reversed(own):
        yield _changes(reader, snapshots[id_], files)


def _changes(
    reader: ManifestReader, snapshot: Document, before: Mapping[Identity, TableFile]
) -> SnapshotChanges:
    """Returns the changes of a snapshot, without the files that the base has, too."""
    id_ = snapshot["snapshot-id"]
    added: list[str] = []
    removed: list[str] = []
    deleted_in: list[str] = []
    row_ids: dict[str, int | None] = {}
    removed_deletes: list[Identity] = []
    equality_deletes: list[Identity] = []
    has_wide_deletes = False
    for entry in reader.entries(list(reader.added_by(snapshot))):
        file = entry.file
        if entry.status is Status.EXISTING or file.snapshot_id != id_:
            continue
        if entry.status is Status.ADDED and file.identity in before:
            continue
        if file.is_data and entry.status is Status.ADDED:
            added.append(file.path)
        elif file.is_data:
            removed.append(file.path)
            row_ids[file.path] = file.first_row_id
        elif entry.status is Status.DELETED:
            removed_deletes.append(file.identity)
        elif file.content is FileContent.EQUALITY_DELETES:
            equality_deletes.append(file.identity)
        elif file.referenced is not None:
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
        equality_deletes,
    )


def _list_location(snapshot: Document) -> str:
    location: str | None = snapshot.get("manifest-list")
    if not location:
        raise InvalidInput(
            f"snapshot {snapshot['snapshot-id']} of format version 1 has no manifest list",
            hint="rewrite its manifests, or upgrade the table",
        )
    return location


def snapshot_of(document: Document) -> Document | None:
    """Returns the current snapshot."""
    id_ = document["current-snapshot-id"]
    if id_ == NO_SNAPSHOT:
        return None
    snapshot: Any = by_id(document["snapshots"], "snapshot-id").get(id_)
    if snapshot is None:
        raise InvalidInput(f"the metadata does not list its current snapshot {id_}")
    return dict(snapshot)
