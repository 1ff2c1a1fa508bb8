"""Decides how changed rows of two sides of a table merge, key by key and cell by cell.

A row is found by its key. The cell that one side changed takes the value of that side. Reads
nothing: the changes of both sides come as batches of Arrow, divided by their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import pyarrow as pa

from nessie_cli.iceberg.row_diff.encoding import HASH, encoded
from nessie_cli.iceberg.row_diff.values import json_values
from nessie_cli.model import RowConflict, RowConflictKind, row_key_text


class Side(IntEnum):
    """A side of a merge."""

    OURS = 0
    THEIRS = 1


class Decisions:
    """The side that is taken for conflicts: for single rows or cells, else for all, else none."""

    def __init__(
        self,
        all_: Side | None = None,
        single: Mapping[tuple[str, str | None], Side] | None = None,
    ) -> None:
        """Takes decisions by the text of a key (`row_key_text`) and column, None for its row."""
        self._all = all_
        self._single = single or {}
        self.used: set[tuple[str, str | None]] = set()
        """The single decisions that were about a conflict."""

    def of(self, key: str, column: str | None) -> Side | None:
        """Returns the side that is taken for a cell, or for a row."""
        for place in ((key, column), (key, None)):
            if place in self._single:
                self.used.add(place)
                return self._single[place]
        return self._all

    @property
    def unused(self) -> list[tuple[str, str | None]]:
        """The single decisions that no conflict was about."""
        return [place for place in self._single if place not in self.used]


class DuplicateKey(NamedTuple):
    """A key that several rows of one state have, or that is null. `state` says which."""

    key: Mapping[str, Any]
    state: str


class RowEdits(NamedTuple):
    """The changes of ours that merge a part of the rows.

    `new` has the columns `hash`, `replaces` and `row`: rows to add, and whether they replace one
    of ours with the same key. `deleted` are hashes of keys whose rows of ours go.
    """

    new: pa.Table
    deleted: Sequence[bytes]


class _Changes(NamedTuple):
    """The numbers of the rows of one key in each state, None where the side did not touch it."""

    before: int | None
    after: int | None

    @property
    def is_change(self) -> bool:
        return self.before is not None or self.after is not None


_NONE = _Changes(None, None)


class PartMerge:
    """Merges the changed rows of both sides that are in one part.

    `rows` has the columns `hash` (of the key), `side`, `sign` (-1 before, 1 after) and `row`.
    `duplicates` and `conflicts` are complete after `edits` was called.
    """

    def __init__(
        self, rows: pa.Table, key: Sequence[str], decisions: Decisions, *, whole_rows: bool
    ) -> None:
        self._rows = rows["row"].combine_chunks()
        self._columns = {
            field.name: column
            for field, column in zip(self._rows.type, self._rows.flatten(), strict=True)
        }
        self._key = key
        self._decisions = decisions
        self._whole_rows = whole_rows
        self.duplicates: list[DuplicateKey] = []
        self.conflicts: list[RowConflict] = []
        self._changes = self._by_key(rows)

    def _by_key(self, rows: pa.Table) -> dict[bytes, list[_Changes]]:
        changes: dict[bytes, list[_Changes]] = {}
        columns = (rows[name].to_pylist() for name in ("hash", "side", "sign"))
        for number, (hash_, side, sign) in enumerate(zip(*columns, strict=True)):
            of_key = changes.setdefault(hash_, [_NONE, _NONE])
            before, after = of_key[side]
            if (before if sign < 0 else after) is not None:
                state = "base" if sign < 0 else Side(side).name.lower()
                self.duplicates.append(DuplicateKey(self._key_of(number), state))
                continue
            of_key[side] = _Changes(number, after) if sign < 0 else _Changes(before, number)
        return changes

    def edits(self) -> RowEdits:
        """Returns what changes in ours. Collects the conflicts that no decision settles."""
        new: list[tuple[bytes, bool, int]] = []
        deleted: list[bytes] = []
        both: list[tuple[bytes, int | None, int, int]] = []
        for hash_, (ours, theirs) in self._changes.items():
            if not theirs.is_change:
                continue
            if not ours.is_change:
                if theirs.after is None:
                    deleted.append(hash_)
                else:
                    new.append((hash_, theirs.before is not None, theirs.after))
            elif ours.after is not None and theirs.after is not None:
                both.append((hash_, ours.before, ours.after, theirs.after))
            elif ours.after is not None or theirs.after is not None:
                self._one_deleted(hash_, ours, theirs, new, deleted)
        merged = self._merged_cells(both)
        single = _new_rows(
            [hash_ for hash_, _, _ in new],
            [replaces for _, replaces, _ in new],
            self._rows.take(pa.array([row for _, _, row in new], pa.int64())),
        )
        return RowEdits(pa.Table.from_batches([single, merged]), deleted)

    # -- rows that one side deleted ----------------------------------------------------------------

    def _one_deleted(
        self,
        hash_: bytes,
        ours: _Changes,
        theirs: _Changes,
        new: list[tuple[bytes, bool, int]],
        deleted: list[bytes],
    ) -> None:
        """Settles a row that one side deleted and the other one changed."""
        present = theirs.after if ours.after is None else ours.after
        assert present is not None
        key = self._key_of(present)
        side = self._decisions.of(row_key_text(key), None)
        if side is Side.THEIRS and theirs.after is not None:
            new.append((hash_, False, theirs.after))
        elif side is Side.THEIRS:
            deleted.append(hash_)
        elif side is None:
            kind = (
                RowConflictKind.DELETE_UPDATE
                if ours.after is None
                else RowConflictKind.UPDATE_DELETE
            )
            before = ours.before if ours.before is not None else theirs.before
            rows = [self._json_row(number) for number in (before, ours.after, theirs.after)]
            self.conflicts.append(RowConflict(kind, key, None, *rows))

    # -- rows that both sides have -----------------------------------------------------------------

    def _merged_cells(self, both: Sequence[tuple[bytes, int | None, int, int]]) -> pa.RecordBatch:
        """Merges rows that both sides changed or added: those that differ from ours."""
        base, ours, theirs = (
            pa.array([numbers[index] for numbers in both], pa.int64()) for index in (1, 2, 3)
        )
        is_new = [before is None for _, before, _, _ in both]
        takes = [[False] * len(both) for _ in self._columns]
        bytes_of = {
            name: [encoded(column.take(each)).to_pylist() for each in (base, ours, theirs)]
            for name, column in self._columns.items()
        }
        if self._whole_rows:
            self._decide_rows(both, bytes_of, takes)
        else:
            for index, (name, states) in enumerate(bytes_of.items()):
                for row, (old, mine, other) in enumerate(zip(*states, strict=True)):
                    if mine == other or (other == old and not is_new[row]):
                        continue
                    if mine == old and not is_new[row]:
                        takes[index][row] = True
                    else:
                        takes[index][row] = self._takes_theirs(name, both[row])
        changed = [any(column) for column in zip(*takes, strict=True)]
        rows = [number for number, is_changed in enumerate(changed) if is_changed]
        arrays = [
            column.take(pa.array([both[row][3 if taken[row] else 2] for row in rows], pa.int64()))
            for taken, column in zip(takes, self._columns.values(), strict=True)
        ]
        merged = pa.StructArray.from_arrays(arrays, fields=list(self._rows.type))
        return _new_rows([both[row][0] for row in rows], [True] * len(rows), merged)

    def _decide_rows(
        self,
        both: Sequence[tuple[bytes, int | None, int, int]],
        bytes_of: Mapping[str, Sequence[Sequence[bytes]]],
        takes: Sequence[list[bool]],
    ) -> None:
        """Decides about rows that differ on the two sides, whichever cells do."""
        pairs = [zip(here, there, strict=True) for _, here, there in bytes_of.values()]
        for row, cells in enumerate(zip(*pairs, strict=True)):
            if all(mine == other for mine, other in cells):
                continue
            _, before, ours, theirs = both[row]
            key = self._key_of(ours)
            side = self._decisions.of(row_key_text(key), None)
            if side is None:
                states = [self._json_row(number) for number in (before, ours, theirs)]
                self.conflicts.append(RowConflict(_kind(before), key, None, *states))
            elif side is Side.THEIRS:
                for taken in takes:
                    taken[row] = True

    def _takes_theirs(self, column: str, numbers: tuple[bytes, int | None, int, int]) -> bool:
        """Returns whether a decision takes the cell of theirs. Without one, it is a conflict."""
        _, before, ours, theirs = numbers
        key = self._key_of(ours)
        side = self._decisions.of(row_key_text(key), column)
        if side is None:
            states = [self._json_cell(number, column) for number in (before, ours, theirs)]
            self.conflicts.append(RowConflict(_kind(before), key, column, *states))
        return side is Side.THEIRS

    # -- values for people -------------------------------------------------------------------------

    def key_of(self, hash_: bytes) -> dict[str, Any]:
        """Returns the key that has a hash."""
        ours, theirs = self._changes[hash_]
        numbers = [*ours, *theirs]
        return self._key_of(next(number for number in numbers if number is not None))

    def _key_of(self, number: int) -> dict[str, Any]:
        return {name: self._json_cell(number, name) for name in self._key}

    def _json_cell(self, number: int | None, column: str) -> Any:
        return None if number is None else json_values(self._columns[column].slice(number, 1))[0]

    def _json_row(self, number: int | None) -> Any:
        return None if number is None else json_values(self._rows.slice(number, 1))[0]


def _new_rows(hashes: Sequence[bytes], replaces: Sequence[bool], rows: pa.Array) -> pa.RecordBatch:
    arrays = [pa.array(hashes, HASH), pa.array(replaces, pa.bool_()), rows]
    return pa.record_batch(arrays, ["hash", "replaces", "row"])


def _kind(before: int | None) -> RowConflictKind:
    return RowConflictKind.INSERT_INSERT if before is None else RowConflictKind.UPDATE_UPDATE
