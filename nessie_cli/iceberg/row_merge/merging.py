"""Merges the rows of two sides of a table, and writes what changes in ours.

The three states are compared by their rows; the rows that theirs changed, and that remain, become
new data files of ours, and deletes for their earlier versions. Rows go through temporary files,
divided by the hashes of their keys, so memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, structs
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import ROW_LINEAGE, normalized
from nessie_cli.iceberg.builder.schemas import identifiers
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.combination import Combination
from nessie_cli.iceberg.combination.file_merge import FileMerge
from nessie_cli.iceberg.combination.manifests import Reading
from nessie_cli.iceberg.combination.states import TableFile, file_digest
from nessie_cli.iceberg.row_diff.deletes import Deletes
from nessie_cli.iceberg.row_diff.difference import check_key
from nessie_cli.iceberg.row_diff.encoding import HASH
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.reading import Check
from nessie_cli.iceberg.row_diff.scan import Read, ScannedFile
from nessie_cli.iceberg.row_diff.schemas import check_columns, every_field, schema_of
from nessie_cli.iceberg.row_diff.spool import Spool
from nessie_cli.iceberg.row_merge.data_files import (
    DataFileForm,
    DataFileWriter,
    Write,
    deletion_vectors,
    position_deletes,
)
from nessie_cli.iceberg.row_merge.decision import (
    Decisions,
    DuplicateKey,
    PartMerge,
    RowEdits,
    Side,
)
from nessie_cli.iceberg.row_merge.sides import (
    PlacesOfOurs,
    SideChanges,
    parts_of,
)
from nessie_cli.model import RowConflict, row_key_text

MOST_CONFLICTS = 1_000
"""The most conflicts about rows that are reported; the others are counted."""
MOST_DUPLICATES = 5
"""The most duplicate keys that are named."""
_MOST_FILTERED = 4_000_000
"""The most changed keys of theirs that are held in memory, to skip other rows of ours."""


class RowCounts(NamedTuple):
    """The rows of ours that a merge adds, changes and deletes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class RowOutcome(Struct, frozen=True):
    """A merge of rows: what combines the table, or why the rows do not merge.

    `conflicts` are the first ones of `conflict_count`.
    """

    combination: Combination
    counts: RowCounts = RowCounts()
    conflicts: Sequence[RowConflict] = ()
    conflict_count: int = 0
    duplicates: Sequence[DuplicateKey] = ()


class RowMerger:
    """Merges the rows of a table whose files do not combine.

    `combination` is the one of its files, and `base` the metadata of the base. `key` are the names
    of columns; by default, the identifier fields. With `whole_rows`, a row that both sides changed
    is a conflict. `check` is called with each batch of rows that was read, and may raise an error.
    Reads manifests at once. Raises `InvalidInput` if the rows cannot be merged.
    """

    def __init__(
        self,
        combination: Combination,
        base: Document,
        read: Read,
        now: int,
        *,
        key: Sequence[str] = (),
        whole_rows: bool = False,
        check: Check | None = None,
    ) -> None:
        self._combination = combination
        self._whole_rows = whole_rows
        base, ours, theirs = normalized(base), combination.ours, combination.theirs
        self._version = int(ours["format-version"])
        if self._version == 1:
            raise InvalidInput("rows are merged from format version 2 on: version 1 has no deletes")
        self._merged = updated(ours, combination.definitions.updates, now)
        self._schema = schema_of(self._merged)
        self._key = list(key) or _identifiers(self._schema, [base, ours, theirs])
        for name in self._key:
            check_key(self._schema, name)
        _check_dropped([base, ours, theirs], self._schema)
        ids = [field.field_id for field in self._schema.fields]
        check_columns(ours, theirs, ids)
        self._ours, self._theirs = (
            SideChanges(side, (base, document), self._schema, self._key, read, check=check)
            for side, document in ((Side.OURS, ours), (Side.THEIRS, theirs))
        )
        self._read = read
        self._check = check

    @property
    def bytes(self) -> int:
        """The bytes of the data files that are read for the changes of both sides."""
        return self._ours.difference.bytes + self._theirs.difference.bytes

    def merge(self, reader: Reader, write: Write, decisions: Decisions) -> RowOutcome:
        """Merges the rows, and writes new data files and deletes. With conflicts, they are void.

        Raises `InvalidInput` or `StoreUnavailable` for a file that cannot be read or written.
        """
        parts = parts_of([self._ours, self._theirs])
        with Spool(self._ours.schema, parts) as changes:
            changed = _Keys()
            theirs = changed.noting(self._theirs.read(reader))
            changes.fill(chain(self._ours.read(reader), theirs))
            ours = PlacesOfOurs(
                self._combination.ours,
                self._schema,
                self._key,
                self._theirs.keys,
                self._read,
                check=self._check,
            )
            with Spool(ours.schema, parts) as places:
                places.fill(changed.selecting(ours.read(reader)))
                writer, result = self._writer(write), _Result(len(ours.files))
                self._merge_parts(changes, places, decisions, writer, result)
            if result.is_refused:
                return result.outcome(self._combination)
            deletes, removed = self._deletes(result.deleted, ours.files, reader, write)
        return result.outcome(self._combined([*writer.files, *deletes], removed))

    def _merge_parts(
        self,
        changes: Spool,
        places: Spool,
        decisions: Decisions,
        writer: DataFileWriter,
        result: _Result,
    ) -> None:
        for part in changes.parts:
            batches = list(changes.read(part))
            if not batches:
                continue
            merge = PartMerge(
                pa.Table.from_batches(batches),
                self._key,
                decisions,
                whole_rows=self._whole_rows,
            )
            edits = merge.edits()
            result.take(merge)
            applied = _Places(places.read(part)).apply(edits, merge, result)
            if not result.is_refused and applied is not None:
                writer.add(*applied)
        if not result.is_refused:
            writer.close()

    # -- what is written -------------------------------------------------------------------------

    def _writer(self, write: Write) -> DataFileWriter:
        merged = self._merged
        specs = by_id(merged["partition-specs"], "spec-id")
        manifests = [
            row
            for row in (*self._combination.listed.rows.values(), *self._listed_theirs())
            if not row.get("content")
        ]
        default = merged["default-spec-id"]
        # A new spec has no manifest whose form a new one could have: the last one is as valid.
        row = next((row for row in manifests if row["partition_spec_id"] == default), manifests[0])
        form = DataFileForm(
            self._schema,
            PartitionSpec.model_validate(specs[row["partition_spec_id"]]),
            merged["properties"],
            self._folder,
            str(row["manifest_path"]),
            self._version >= ROW_LINEAGE,
        )
        return DataFileWriter(form, write)

    @property
    def _folder(self) -> str:
        """The folder of data files, and of their deletes."""
        properties = self._merged["properties"]
        folder: str = properties.get("write.data.path") or f"{self._merged['location']}/data"
        return folder.rstrip("/")

    def _listed_theirs(self) -> Iterator[Mapping[str, object]]:
        for source in self._combination.sources.values():
            yield source.listed

    def _deletes(
        self,
        deleted: Sequence[BitMap64],
        files: Sequence[ScannedFile],
        reader: Reader,
        write: Write,
    ) -> tuple[list[TableFile], list[TableFile]]:
        """Writes the deletes of positions in files of ours. Returns them and the replaced ones."""
        folder = self._folder
        touched = [(file, gone) for file, gone in zip(files, deleted, strict=True) if gone]
        if self._version < ROW_LINEAGE:
            return [position_deletes(each.file, gone, folder, write) for each, gone in touched], []
        # A data file has one vector, also with the rows that older files of deletes delete.
        existing = Deletes(reader, every_field([self._merged]))
        vectors = [
            (each.file, gone | existing.positions(each.positions, each.file.path))
            for each, gone in touched
        ]
        replaced = [file for each, _ in touched for file in each.positions if file.is_vector]
        return deletion_vectors(vectors, folder, write), replaced

    def _combined(self, files: Sequence[TableFile], removed: Sequence[TableFile]) -> Combination:
        """Returns the combination that adds files to ours, and removes some."""
        old = self._combination
        listed = {path: Reading(row) for path, row in old.listed.rows.items()}
        # The rows of the new files of theirs are in the merged files: no later merge adds these.
        gone = {
            file_digest(pair.file.path)
            for pair in self._theirs.difference.files
            if pair.before is None
        }
        return structs.replace(
            old,
            files=FileMerge(old.files.sequence, removed=removed, gone=gone),
            sources={**listed, **old.sources},
            written=files,
            replaces_only=False,
            same_keys=(),
            vectors=(),
        )


class _Keys:
    """The hashes of the keys that theirs changed, as long as they are not too many."""

    def __init__(self) -> None:
        self._hashes: list[pa.Array] | None = []
        self._count = 0

    def noting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches unchanged, and notes their hashes."""
        for batch in batches:
            self._count += batch.num_rows
            if self._count > _MOST_FILTERED:
                self._hashes = None
            elif self._hashes is not None:
                self._hashes.append(batch["hash"])
            yield batch

    def selecting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the rows with these hashes, or all."""
        if self._hashes is None:
            yield from batches
            return
        values = pa.chunked_array(self._hashes, HASH).combine_chunks()
        for batch in batches:
            yield batch.filter(pc.is_in(batch["hash"], value_set=values))


class _Result:
    """What the parts have in common: deleted positions by file, counts, and what is refused."""

    def __init__(self, files: int) -> None:
        self.deleted = [BitMap64() for _ in range(files)]
        self.inserted = self.updated = self.removed = 0
        self._conflicts: list[RowConflict] = []
        self._conflict_count = 0
        self._duplicates: list[DuplicateKey] = []

    @property
    def is_refused(self) -> bool:
        return bool(self._conflict_count or self._duplicates)

    def take(self, merge: PartMerge) -> None:
        """Adds what a part refuses."""
        self._conflict_count += len(merge.conflicts)
        self._conflicts += merge.conflicts[: MOST_CONFLICTS - len(self._conflicts)]
        self.add_duplicates(merge.duplicates)

    def add_duplicates(self, duplicates: Sequence[DuplicateKey]) -> None:
        self._duplicates += duplicates[: MOST_DUPLICATES - len(self._duplicates)]

    def outcome(self, combination: Combination) -> RowOutcome:
        counts = RowCounts(self.inserted, self.updated, self.removed)
        return RowOutcome(
            combination, counts, self._conflicts, self._conflict_count, self._duplicates
        )


class _Places:
    """The places of the rows of ours in one part, by the hashes of their keys."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._places: dict[bytes, tuple[int, int, int | None]] = {}
        self._twice: set[bytes] = set()
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for hash_, file, position, row_id in zip(*columns, strict=True):
                if hash_ in self._places:
                    self._twice.add(hash_)
                self._places[hash_] = (file, position, row_id)

    def apply(
        self, edits: RowEdits, merge: PartMerge, result: _Result
    ) -> tuple[pa.Array, pa.Array] | None:
        """Deletes the rows that go, and returns the new rows with their ids.

        Keys that ours has twice, or already has where theirs adds a row, are duplicates.
        """
        row_ids: list[int | None] = []
        hashes, replaces = (edits.new[name].to_pylist() for name in ("hash", "replaces"))
        for hash_, is_update in zip(hashes, replaces, strict=True):
            row_ids.append(self._delete(hash_, merge, result) if is_update else None)
            if not is_update and hash_ in self._places:
                result.add_duplicates([DuplicateKey(merge.key_of(hash_), "theirs")])
        for hash_ in edits.deleted:
            self._delete(hash_, merge, result)
        result.updated += sum(replaces)
        result.inserted += len(replaces) - sum(replaces)
        result.removed += len(edits.deleted)
        if not hashes:
            return None
        return edits.new["row"].combine_chunks(), pa.array(row_ids, pa.int64())

    def _delete(self, hash_: bytes, merge: PartMerge, result: _Result) -> int | None:
        """Deletes a row of ours, and returns its id."""
        if hash_ in self._twice:
            result.add_duplicates([DuplicateKey(merge.key_of(hash_), "ours")])
            return None
        place = self._places.get(hash_)
        if place is None:
            raise InvalidInput(
                f"the row {row_key_text(merge.key_of(hash_))} is not in the files of ours in which"
                " it should be by their statistics"
            )
        file, position, row_id = place
        result.deleted[file].add(position)
        return row_id


def _identifiers(schema: Schema, states: Sequence[Document]) -> list[str]:
    """Returns the names of the identifier fields. Raises `InvalidInput` without any."""
    ids = [
        identifiers(by_id(each["schemas"], "schema-id")[each["current-schema-id"]])
        for each in states
    ]
    if any(each != ids[0] for each in ids):
        raise InvalidInput(
            "the rows cannot be merged: the identifier fields were changed",
            hint="name the columns of the key with --key",
        )
    names = [field.name for field in schema.fields if field.field_id in ids[0]]
    if not ids[0] or len(names) != len(ids[0]):
        raise InvalidInput(
            "the rows cannot be merged: the table has no identifier fields to find them by",
            hint="name the columns of the key with --key",
        )
    return names


def _check_dropped(states: Sequence[Document], schema: Schema) -> None:
    """Raises `InvalidInput` if one side dropped a column that the other one may have changed."""
    base, ours, theirs = (
        {field.field_id: field.name for field in schema_of(each).fields} for each in states
    )
    merged = {field.field_id for field in schema.fields}
    dropped = [
        name for id_, name in base.items() if id_ not in merged and (id_ in ours or id_ in theirs)
    ]
    if dropped:
        raise InvalidInput(f"the rows cannot be merged: one side dropped the column {dropped[0]}")
