"""Merges the rows of single parts, divided by the hashes of keys, and adds the results.

A part needs no other one, so any process can merge it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.row_merge.data_files import DataFileForm, DataFileWriter
from nessie_cli.iceberg.row_merge.decision import Decisions, DuplicateKey, PartMerge, RowEdits
from nessie_cli.model import RowConflict, row_key_text

MOST_CONFLICTS = 1_000
"""The most conflicts about rows that are reported; the others are counted."""
MOST_DUPLICATES = 5
"""The most duplicate keys that are named."""


class RowCounts(NamedTuple):
    """The rows of ours that a merge adds, changes and deletes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class RowResult:
    """The result of some parts: new files, deleted positions, counts, and refusals.

    `deleted` has positions by the numbers of files of ours. The conflicts are those with the
    smallest keys of `conflict_count`. Neither they nor the duplicates depend on the division.
    """

    def __init__(self) -> None:
        self.files: list[TableFile] = []
        self.deleted: defaultdict[int, BitMap64] = defaultdict(BitMap64)
        self.counts = RowCounts()
        self.conflicts: list[RowConflict] = []
        self.conflict_count = 0
        self.duplicates: list[DuplicateKey] = []

    @property
    def is_refused(self) -> bool:
        """Whether rows are in conflict, or keys are there twice."""
        return bool(self.conflict_count or self.duplicates)

    def add(self, other: RowResult) -> None:
        """Adds the result of other parts."""
        self.files += other.files
        for file, positions in other.deleted.items():
            self.deleted[file] |= positions
        self.add_counts(other.counts)
        self.add_conflicts(other.conflicts, other.conflict_count)
        self.add_duplicates(other.duplicates)

    def add_counts(self, counts: RowCounts) -> None:
        """Adds numbers of rows."""
        self.counts = RowCounts(*map(sum, zip(self.counts, counts, strict=True)))

    def add_conflicts(self, conflicts: Sequence[RowConflict], count: int) -> None:
        """Adds conflicts, which may be some of `count`."""
        every = sorted([*self.conflicts, *conflicts], key=_key_of)
        self.conflicts = every[:MOST_CONFLICTS]
        self.conflict_count += count

    def add_duplicates(self, duplicates: Sequence[DuplicateKey]) -> None:
        """Adds duplicate keys."""
        every = sorted([*self.duplicates, *duplicates], key=_key_and_state_of)
        self.duplicates = every[:MOST_DUPLICATES]


def _key_of(conflict: RowConflict) -> tuple[Any, ...]:
    # The values of a column have one type.
    return tuple(conflict.key.values())


def _key_and_state_of(duplicate: DuplicateKey) -> tuple[Any, ...]:
    return *duplicate.key.values(), duplicate.state


class PartWork(NamedTuple):
    """How parts are merged, and the form of new data files."""

    key: Sequence[str]
    whole_rows: bool
    decisions: Decisions
    form: DataFileForm

    def merge(
        self,
        changes: Sequence[pa.RecordBatch],
        places: Iterable[pa.RecordBatch],
        writer: DataFileWriter,
        result: RowResult,
    ) -> None:
        """Merges the rows of a part into a result. Its rows are written as long as none is refused.

        `changes` are batches of `SideChanges`, of both sides, and `places` those of `PlacesOfOurs`.
        """
        if not changes:
            return
        merge = PartMerge(
            pa.Table.from_batches(changes), self.key, self.decisions, whole_rows=self.whole_rows
        )
        edits = merge.edits()
        result.add_conflicts(merge.conflicts, len(merge.conflicts))
        result.add_duplicates(merge.duplicates)
        applied = _Places(places).apply(edits, merge, result)
        if not result.is_refused and applied is not None:
            writer.add(*applied)

    def close(self, writer: DataFileWriter, result: RowResult) -> None:
        """Writes the last rows of some parts, unless the result is refused."""
        if not result.is_refused:
            writer.close()
        result.files += writer.files


class _Places:
    """The places of the rows of ours in one part, by the hashes of their keys."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._places: dict[bytes, tuple[int, int, int | None]] = {}
        self._twice: set[bytes] = set()
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for hash_, file, position, row_id in zip(*columns, strict=True):
                if hash_ in self._places:
                    self._twice.add(hash_)
                self._places[hash_] = (file, position, row_id)

    def apply(
        self, edits: RowEdits, merge: PartMerge, result: RowResult
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
        updated = sum(replaces)
        result.add_counts(RowCounts(len(replaces) - updated, updated, len(edits.deleted)))
        if not hashes:
            return None
        return edits.new["row"].combine_chunks(), pa.array(row_ids, pa.int64())

    def _delete(self, hash_: bytes, merge: PartMerge, result: RowResult) -> int | None:
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
