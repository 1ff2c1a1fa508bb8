"""Writes a combined table: manifests, a manifest list and a metadata file, but no data file.

United deletion vectors are in one Puffin file beside them.

The snapshot is a new one on top of ours, with those manifests of ours that lose no file.
"""

from __future__ import annotations

import secrets
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import partitions, table
from nessie_cli.iceberg.builder.document import MAIN, NO_SNAPSHOT, ROW_LINEAGE
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.combination import Combination
from nessie_cli.iceberg.combination.file_merge import AddedFile
from nessie_cli.iceberg.combination.manifests import (
    NewEntry,
    NewSnapshot,
    Rewriting,
    Status,
    rewrite_manifest,
    write_list,
)
from nessie_cli.iceberg.combination.states import (
    ANY_FILE,
    GONE,
    FileContent,
    Identity,
    Row,
    TableFile,
)
from nessie_cli.iceberg.combination.unions import UnitedVector
from nessie_cli.iceberg.locations import METADATA_PATH
from nessie_cli.iceberg.vectors import puffin_file
from nessie_cli.iceberg.warehouses.metadata_files import next_metadata_file

Write = Callable[[str, bytes], None]
"""Writes a new file. Raises `InvalidInput` or `StoreUnavailable`."""
_SNAPSHOT_ID_BITS = 63
_MOST_GONE = 4_000
"""The most data files that a summary lists as gone. With more, it says so of all files."""


class CombinedTable(NamedTuple):
    """The metadata of a combined table, and the location of its metadata file."""

    document: Document
    location: str


def write_table(
    combination: Combination,
    write: Write,
    *,
    location: str,
    now: int,
    summary: Mapping[str, str],
) -> CombinedTable:
    """Writes a combination without conflicts. Returns its metadata, which is not written yet.

    `location` is the metadata file of ours, `now` the time in milliseconds, and `summary` is added
    to that of the snapshot. Raises `InvalidInput` if the definitions do not fit, and the errors of
    `write`.
    """
    assert not combination.conflicts
    ours = combination.ours
    updates = list(combination.definitions.updates)
    if combination.written or not combination.files.is_empty:
        merged = table.updated(ours, updates, now)
        _check_specs(combination, merged)
        snapshot = _Snapshot(combination, merged, write, max(now, ours["last-updated-ms"]))
        updates += snapshot.updates(summary)
    document = table.updated(ours, updates, now, location)
    return CombinedTable(
        document, next_metadata_file(document["location"], document["properties"], location)
    )


def _check_specs(combination: Combination, merged: Document) -> None:
    """Checks that the ids of partition specs mean the same in the files of theirs."""
    here, there = (
        {id_: partitions.spec_form(spec) for id_, spec in by_id(each, "spec-id").items()}
        for each in (merged["partition-specs"], combination.theirs["partition-specs"])
    )
    files = [added.file for added in combination.files.added]
    for file in (*files, *(vector.theirs for vector in combination.vectors)):
        if here.get(file.spec_id) != there.get(file.spec_id):
            raise InvalidInput(f"partition spec {file.spec_id} differs on the two sides")


class _Snapshot:
    """The new snapshot. Writes its manifests and their list."""

    def __init__(self, combination: Combination, merged: Document, write: Write, now: int) -> None:
        self._combination, self._merged, self._write, self._now = combination, merged, write, now
        self._version = int(merged["format-version"])
        self._sequence = combination.files.sequence
        self._id = secrets.randbits(_SNAPSHOT_ID_BITS)
        properties = merged["properties"]
        folder = properties.get(METADATA_PATH) or f"{merged['location']}/metadata"
        self._name = f"{folder.rstrip('/')}/{uuid.uuid4()}"
        self._created = self._replaced = 0
        self._added = [
            *combination.files.added,
            *map(AddedFile, (*self._united_vectors(), *combination.written)),
        ]

    def updates(self, summary: Mapping[str, str]) -> list[Document]:
        """Returns the updates that add the snapshot and make it the current one."""
        added = self._added_manifests()
        unchanged, rewritten = self._manifests_of_ours()
        rows = [*added, *rewritten, *unchanged]
        # Data manifests come first: the ids of rows follow their order.
        rows.sort(key=lambda row: bool(row.get("content")))
        first_row_id = self._merged.get("next-row-id") or 0
        # Files that theirs rewrote contain ids that it gave out: no other row gets these.
        unused = max(first_row_id, self._combination.theirs.get("next-row-id") or 0)
        next_row_id = self._number_rows(rows, unused)
        location = f"{self._name}-list.avro"
        parent = self._combination.ours["current-snapshot-id"]
        metadata = {
            "snapshot-id": str(self._id),
            "parent-snapshot-id": "null" if parent == NO_SNAPSHOT else str(parent),
            "format-version": str(self._version),
        }
        if self._version > 1:
            metadata["sequence-number"] = str(self._sequence)
        unknown = self._combination.listed.schema
        self._write(location, write_list(rows, self._version, unknown, metadata))
        counts = {
            "manifests-created": len(added) + len(rewritten),
            "manifests-kept": len(unchanged),
            "manifests-replaced": len(rewritten),
        }
        snapshot: Document = {
            "snapshot-id": self._id,
            "timestamp-ms": self._now,
            "manifest-list": location,
            "summary": {
                "operation": self._operation(),
                **self._counts(),
                **{name: str(count) for name, count in counts.items()},
                **self._gone(),
                **summary,
            },
            "schema-id": self._merged["current-schema-id"],
        }
        if parent != NO_SNAPSHOT:
            snapshot["parent-snapshot-id"] = parent
        if self._version > 1:
            snapshot["sequence-number"] = self._sequence
        if self._version >= ROW_LINEAGE:
            snapshot |= {"first-row-id": first_row_id, "added-rows": next_row_id - first_row_id}
        ref = self._merged["refs"].get(MAIN) or {"type": "branch"}
        return [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": MAIN, **ref, "snapshot-id": self._id},
        ]

    # -- deletion vectors ------------------------------------------------------------------------

    def _united_vectors(self) -> list[TableFile]:
        """Writes the united deletion vectors, all in one file."""
        vectors = self._combination.vectors
        if not vectors:
            return []
        location = f"{self._name}-deletes.puffin"
        named = ((str(vector.theirs.referenced), vector.positions) for vector in vectors)
        data, blobs = puffin_file(named)
        self._write(location, data)
        return [
            _united(vector, Identity(location, *blob), len(data))
            for vector, blob in zip(vectors, blobs, strict=True)
        ]

    # -- manifests -------------------------------------------------------------------------------

    def _added_manifests(self) -> list[Row]:
        """Writes the files of theirs, with a manifest for each that contains some of them."""
        by_manifest: defaultdict[tuple[str, bool], list[NewEntry]] = defaultdict(list)
        for added in self._added:
            # The deletes that a merge of rows writes have the form of entries of their data files.
            by_manifest[added.file.manifest, added.file.is_data].append(
                NewEntry(Status.ADDED, added.file, self._id, added.sequence)
            )
        return self._written(
            [
                self._rewriting(path, self._combination.sources[path].listed, added=entries)
                for (path, _), entries in by_manifest.items()
            ]
        )

    def _manifests_of_ours(self) -> tuple[list[Row], list[Row]]:
        """Returns the manifests of ours that stay, and new ones for those that lose files."""
        removed: defaultdict[str, set[Identity]] = defaultdict(set)
        for file in self._combination.files.removed:
            removed[file.manifest].add(file.identity)
        unchanged, jobs = [], []
        for path, row in self._combination.listed.rows.items():
            if path in removed:
                jobs.append(self._rewriting(path, row, removed=removed[path]))
            elif _has_files(row):
                unchanged.append(dict(row))
        return unchanged, self._written(jobs)

    def _rewriting(
        self,
        path: str,
        listed: Row,
        *,
        added: Sequence[NewEntry] = (),
        removed: Collection[Identity] = (),
    ) -> Rewriting:
        location = f"{self._name}-m{self._created}.avro"
        self._created += 1
        snapshot = NewSnapshot(self._id, self._sequence, self._version)
        limits = self._combination.sources[path].limits
        return Rewriting(listed, location, snapshot, added, removed, limits)

    def _written(self, jobs: Sequence[Rewriting]) -> list[Row]:
        """Writes new manifests. Returns their rows for the manifest list."""
        rows = []
        for data, row in self._combination.engine.map(rewrite_manifest, jobs):
            self._write(row["manifest_path"], data)
            rows.append(row)
        return rows

    def _number_rows(self, rows: Iterable[Row], next_row_id: int) -> int:
        """Gives each data manifest without ids of rows the next ones. Returns the next id."""
        if self._version < ROW_LINEAGE:
            return next_row_id
        for row in rows:
            if not row.get("content") and row.get("first_row_id") is None:
                row["first_row_id"] = next_row_id
                next_row_id += row["added_rows_count"] + row["existing_rows_count"]
        return next_row_id

    # -- summary ---------------------------------------------------------------------------------

    def _gone(self) -> dict[str, str]:
        """Returns which files of theirs are gone, so that they are not added later."""
        gone = sorted(self._combination.files.gone)
        if not gone:
            return {}
        return {GONE: ANY_FILE if len(gone) > _MOST_GONE else " ".join(gone)}

    def _operation(self) -> str:
        files = self._combination.files
        if self._combination.replaces_only:
            return "replace"
        adds_rows = any(added.file.is_data for added in self._added)
        deletes = bool(files.removed) or any(not added.file.is_data for added in self._added)
        if adds_rows:
            return "overwrite" if deletes else "append"
        return "delete"

    def _counts(self) -> dict[str, str]:
        """Returns the numbers of added and removed files and rows, and the new totals."""
        merge = self._combination.files
        changes = {
            "added": _numbers(added.file for added in self._added),
            "removed": _numbers(merge.removed),
        }
        counts = {
            name: changes[change][number]
            for name, change, number in _COUNTS
            if changes[change][number]
        }
        for total, number in _TOTALS.items():
            before = self._total(total)
            after = before + changes["added"][number] - changes["removed"][number]
            if before >= 0 and after >= 0:
                counts[total] = after
        return {name: str(count) for name, count in counts.items()}

    def _total(self, name: str) -> int:
        """Returns a total of the snapshot of ours, 0 without a snapshot, -1 if it is unknown."""
        ours = self._combination.ours
        if ours["current-snapshot-id"] == NO_SNAPSHOT:
            return 0
        snapshot = by_id(ours["snapshots"], "snapshot-id")[ours["current-snapshot-id"]]
        value = str((snapshot.get("summary") or {}).get(name, ""))
        return int(value) if value.isdecimal() else -1


_COUNTS = (
    ("added-data-files", "added", "data-files"),
    ("deleted-data-files", "removed", "data-files"),
    ("added-records", "added", "records"),
    ("deleted-records", "removed", "records"),
    ("added-delete-files", "added", "delete-files"),
    ("removed-delete-files", "removed", "delete-files"),
    ("added-dvs", "added", "dvs"),
    ("removed-dvs", "removed", "dvs"),
    ("added-position-delete-files", "added", "position-delete-files"),
    ("removed-position-delete-files", "removed", "position-delete-files"),
    ("added-equality-delete-files", "added", "equality-delete-files"),
    ("removed-equality-delete-files", "removed", "equality-delete-files"),
    ("added-position-deletes", "added", "position-deletes"),
    ("removed-position-deletes", "removed", "position-deletes"),
    ("added-equality-deletes", "added", "equality-deletes"),
    ("removed-equality-deletes", "removed", "equality-deletes"),
    ("added-files-size", "added", "files-size"),
    ("removed-files-size", "removed", "files-size"),
)
_TOTALS = {
    "total-data-files": "data-files",
    "total-records": "records",
    "total-delete-files": "delete-files",
    "total-position-deletes": "position-deletes",
    "total-equality-deletes": "equality-deletes",
    "total-files-size": "files-size",
}


def _numbers(files: Iterable[TableFile]) -> dict[str, int]:
    numbers: defaultdict[str, int] = defaultdict(int)
    for file in files:
        size = file.identity.size if file.is_vector else file.row.get("file_size_in_bytes")
        numbers["files-size"] += size or 0
        if file.is_data:
            numbers["data-files"] += 1
            numbers["records"] += file.records
            continue
        numbers["delete-files"] += 1
        by_position = file.content is FileContent.POSITION_DELETES
        kind = "position" if by_position else "equality"
        numbers[f"{kind}-deletes"] += file.records
        numbers["dvs" if file.is_vector else f"{kind}-delete-files"] += 1
    return numbers


def _united(vector: UnitedVector, identity: Identity, file_size: int) -> TableFile:
    """Returns a new vector, with the entry of the vector of theirs."""
    records = len(vector.positions)
    row = {
        **vector.theirs.row,
        "file_path": identity.path,
        "content_offset": identity.offset,
        "content_size_in_bytes": identity.size,
        "file_size_in_bytes": file_size,
        "record_count": records,
    }
    return structs.replace(vector.theirs, identity=identity, records=records, row=row)


def _has_files(row: Row) -> bool:
    counts = [row.get("added_files_count"), row.get("existing_files_count")]
    return None in counts or any(counts)
