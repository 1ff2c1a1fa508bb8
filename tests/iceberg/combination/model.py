"""A table on files in memory: each row version is a token that never comes back."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec import structs
from pyroaring import BitMap64

from nessie_cli.iceberg.combination.decision import merge_files
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.file_merge import FileMerge
from nessie_cli.iceberg.combination.merged_base import (
    merged_state,
    own_changes,
    without_dangling,
)
from nessie_cli.iceberg.combination.states import (
    FileContent,
    Identity,
    SnapshotChanges,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.combination.unions import UnitedVector, unite
from tests.iceberg.row_diff.tables import column, schema

KEYS = 4
DELETED = "deleted"

Row = tuple[str, int]
"""A token and the key that equality deletes name."""


def bounds(keys: Collection[int]) -> dict[str, Any]:
    """The bounds of the keys in a file, as in a manifest."""
    if not keys:
        return {}
    ends = {"lower_bounds": min(keys), "upper_bounds": max(keys)}
    return {name: {1: struct.pack("<i", key)} for name, key in ends.items()}


class Stored(NamedTuple):
    """What a file contains: rows with the ids that it says, positions in one file, or keys."""

    rows: tuple[Row, ...] = ()
    row_ids: tuple[int | None, ...] = ()
    positions: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class Earlier(NamedTuple):
    """An earlier state: its files, how many snapshots it has, and the tokens that were gone."""

    files: dict[Identity, tuple[TableFile, Stored]]
    snapshots: int
    replaced: dict[str, str]


class Table:
    """One side of a table, on files in memory."""

    def __init__(self, rng: random.Random, version: int) -> None:
        self.rng, self.version = rng, version
        self.files: dict[Identity, tuple[TableFile, Stored]] = {}
        self.last = self.next_row_id = 0
        self.history: list[SnapshotChanges] = []
        self.listed: set[tuple[int | None, int]] = set()
        """The ids and sequence numbers of all snapshots, also of those that were rolled back."""
        self.replaced: dict[str, str] = {}
        """The tokens that are gone. An update has the new token, a deletion a text of its own."""
        self.earlier: list[Earlier] = []
        self.numbers = iter(range(10**9))
        self.snapshot = 0
        self.merged: TableState | None = None
        """The state that several merge bases give together, if this is it."""

    def fork(self, name: str) -> Table:
        side = Table(self.rng, self.version)
        side.files = dict(self.files)
        side.last, side.next_row_id, side.name = self.last, self.next_row_id, name
        side.history, side.listed = list(self.history), set(self.listed)
        side.replaced, side.earlier = dict(self.replaced), list(self.earlier)
        side.numbers = self.numbers
        return side

    name = "b"

    # -- reading ---------------------------------------------------------------------------------

    def live(self, path: str) -> list[tuple[int, Row]]:
        """Returns the live rows of a data file with their positions."""
        file, stored = self.files[Identity(path)]
        hidden: set[int] = set()
        keys: set[int] = set()
        for delete, content in self.files.values():
            if delete.referenced == path and delete.sequence >= file.sequence:
                hidden |= content.positions
            if delete.content is FileContent.EQUALITY_DELETES and delete.sequence > file.sequence:
                keys |= content.keys
        return [
            (position, row)
            for position, row in enumerate(stored.rows)
            if position not in hidden and row[1] not in keys
        ]

    @property
    def paths(self) -> list[str]:
        return [id_.path for id_, (file, _) in self.files.items() if file.is_data]

    def tokens(self) -> Counter[str]:
        return Counter(row[0] for path in self.paths for _, row in self.live(path))

    @property
    def has_equality_deletes(self) -> bool:
        return any(f.content is FileContent.EQUALITY_DELETES for f, _ in self.files.values())

    def row_ids(self) -> dict[str, int]:
        """Returns the id of each row, in format version 3."""
        return {
            row[0]: (file.first_row_id or 0) + position if given is None else given
            for path in self.paths
            for file, stored in [self.files[Identity(path)]]
            for position, row in self.live(path)
            for given in [stored.row_ids[position]]
        }

    def state(self, base: Table) -> TableState:
        """Returns the state with the snapshots that the base does not have."""
        if self.merged is not None:
            return self.merged
        files = {id_: file for id_, (file, _) in self.files.items()}
        line = {changes.id for changes in base.history}
        own = list(takewhile(lambda changes: changes.id not in line, reversed(self.history)))
        history = [
            structs.replace(each, added=[p for p in each.added if Identity(p) not in base.files])
            for each in reversed(own)
        ]
        if base.merged is not None:
            files = without_dangling(files, base.merged.lost or ())
            history = list(own_changes(history, base.merged))
        return TableState(self.version, self.last, files, self.next_row_id, history)

    # -- writing ---------------------------------------------------------------------------------

    def rows(self, count: int) -> tuple[Row, ...]:
        return tuple(
            (f"{self.name}{next(self.numbers)}", self.rng.randrange(KEYS)) for _ in range(count)
        )

    def commit(
        self,
        operation: str,
        data: tuple[tuple[Row, ...], ...] = (),
        removed: tuple[str, ...] = (),
        *,
        positions: dict[str, frozenset[int]] | None = None,
        keys: frozenset[int] = frozenset(),
        sequence: int | None = None,
        updated: tuple[str, str] = ("", ""),
        upserted: str | None = None,
    ) -> None:
        before = set(self.tokens())
        self.remember()
        self.last += 1
        self.snapshot = next(self.numbers)
        ids: dict[str, int] = self.row_ids()
        if updated[0]:
            ids[updated[1]] = ids[updated[0]]
        first_row_ids = {path: self.files[Identity(path)][0].first_row_id for path in removed}
        removed_deletes = []
        for path in removed:
            del self.files[Identity(path)]
            for id_ in [i for i, (f, _) in self.files.items() if f.referenced == path]:
                del self.files[id_]
                removed_deletes.append(id_)
        added = []
        for rows in data:
            file = self._file(FileContent.DATA, len(rows), sequence)
            file = structs.replace(
                file, first_row_id=self.next_row_id, row=bounds({key for _, key in rows})
            )
            stored = Stored(rows, tuple(ids.get(token) for token, _ in rows))
            self.files[file.identity] = (file, stored)
            self.next_row_id += len(rows)
            added.append(file.path)
        for path, deleted in (positions or {}).items():
            hidden = deleted
            if self.version == 3:
                vectors = [i for i, (f, _) in self.files.items() if f.referenced == path]
                hidden = hidden.union(*(self.files.pop(id_)[1].positions for id_ in vectors))
                removed_deletes += vectors
            file = self._file(FileContent.POSITION_DELETES, len(hidden), None, path)
            self.files[file.identity] = (file, Stored(positions=hidden))
        if keys:
            file = self._file(FileContent.EQUALITY_DELETES, len(keys), None)
            file = structs.replace(file, row=bounds(keys) | {"equality_ids": [1]})
            self.files[file.identity] = (file, Stored(keys=keys))
        self.record(
            SnapshotChanges(
                operation,
                added,
                removed,
                list(positions or ()),
                False,
                first_row_ids,
                removed_deletes,
                id=self.snapshot,
                equality_deletes=[file.identity] if keys else [],
            )
        )
        for token in before - set(self.tokens()):
            self.replaced[token] = upserted or f"{DELETED} {next(self.numbers)}"
        if updated[0]:
            self.replaced[updated[0]] = updated[1]

    def remember(self) -> None:
        """Remembers this state for rollbacks."""
        self.earlier.append(Earlier(dict(self.files), len(self.history), dict(self.replaced)))

    def record(self, changes: SnapshotChanges) -> None:
        """Adds a snapshot to the history."""
        self.history.append(changes)
        self.listed.add((changes.id, self.last if self.version > 1 else 0))

    def new_file(self) -> tuple[TableFile, Stored]:
        """Returns a data file that is in no table yet."""
        rows = self.rows(self.rng.randint(1, 3))
        file = self._file(FileContent.DATA, len(rows), None)
        file = structs.replace(file, row=bounds({key for _, key in rows}))
        return file, Stored(rows, (None,) * len(rows))

    def add_file(self, file: TableFile, stored: Stored) -> None:
        """Adds a data file that exists, perhaps also in other tables."""
        self.remember()
        self.last += 1
        number = self.last if self.version > 1 else 0
        self.files[file.identity] = (
            structs.replace(
                file, sequence=number, file_sequence=number, first_row_id=self.next_row_id
            ),
            stored,
        )
        self.next_row_id += file.records
        self.record(SnapshotChanges("append", [file.path], id=next(self.numbers)))

    def _file(
        self, content: FileContent, records: int, sequence: int | None, path: str | None = None
    ) -> TableFile:
        name = f"{self.name}-{next(self.numbers)}"
        vector = self.version == 3 and content is FileContent.POSITION_DELETES
        number = 0 if self.version == 1 else self.last
        return TableFile(
            Identity(name, 4, 10) if vector else Identity(name),
            content,
            0,
            (),
            records,
            number if sequence is None or self.version == 1 else sequence,
            number,
            self.snapshot,
            {},
            path,
        )

    def step(self, *, equality: bool) -> None:
        rng, paths = self.rng, self.paths
        operations = ["append", "append", "drop", "overwrite", "delete", "update", "compact"]
        operation = rng.choice(operations + ["equality", "upsert"] * equality)
        if self.earlier and rng.random() < 0.05:
            self.roll_back(rng.randrange(len(self.earlier)))
            return
        if operation == "append" or not paths:
            self.commit("append", (self.rows(rng.randint(1, 3)),))
            return
        path = rng.choice(paths)
        live = self.live(path)
        match operation:
            case "drop":
                self.commit("delete", removed=(path,))
            case "overwrite" if live:
                kept = tuple(row for _, row in live[1:])
                new = self.rows(rng.randint(0, 1))
                updated = (live[0][1][0], new[0][0]) if new else ("", "")
                self.commit("overwrite", (kept + new,), (path,), updated=updated)
            case "delete" | "update" if live and self.version > 1:
                self.delete(path, rng.choice(live), is_updated=operation == "update")
            case "compact":
                chosen = rng.sample(paths, rng.randint(1, len(paths)))
                rows = tuple(row for each in chosen for _, row in self.live(each))
                keeps = equality and rng.random() < 0.5
                sequence = self.last if keeps else None
                self.commit("replace", (rows,), tuple(chosen), sequence=sequence)
            case "equality" if self.version > 1:
                self.commit("delete", keys=frozenset({rng.randrange(KEYS)}))
            case "upsert" if self.version > 1:
                new = self.rows(1)
                keys = frozenset({new[0][1]})
                self.commit("overwrite", (new,), keys=keys, upserted=new[0][0])

    def roll_back(self, number: int) -> None:
        files, length, replaced = self.earlier[number]
        self.files, self.replaced = dict(files), dict(replaced)
        self.history = self.history[:length]
        del self.earlier[number:]

    def delete(self, path: str, place: tuple[int, Row], *, is_updated: bool) -> None:
        """Deletes a row by its position."""
        position, row = place
        new = (self.rows(1),) if is_updated else ()
        self.commit(
            "overwrite" if new else "delete",
            new,
            positions={path: frozenset({position})},
            updated=(row[0], new[0][0][0]) if new else ("", ""),
        )


def united(merge: FileMerge, *tables: Table) -> tuple[FileMerge, list[UnitedVector]]:
    """Returns a merge with its unions made."""
    files = {id_: stored for table in tables for id_, (_, stored) in table.files.items()}
    positions = {id_: BitMap64(stored.positions) for id_, stored in files.items()}
    return unite(merge, positions)


def merged(
    base: Table,
    ours: Table,
    theirs: Table,
    merge: FileMerge,
    vectors: Sequence[UnitedVector] = (),
) -> Table:
    """Returns the table that the merge describes."""
    result = ours.fork(f"{ours.name}{theirs.name}")
    if merge.is_empty:
        return result
    result.remember()
    result.last = merge.sequence
    result.snapshot = next(result.numbers)
    result.next_row_id = max(ours.next_row_id, theirs.next_row_id)
    for file in merge.removed:
        del result.files[file.identity]
    for added in merge.added:
        file, stored = theirs.files[added.file.identity]
        sequence = merge.sequence if added.sequence is None else added.sequence
        moved = TableFile(
            file.identity, file.content, 0, (), file.records, sequence, merge.sequence,
            result.snapshot, file.row, file.referenced, first_row_id=result.next_row_id,
        )  # fmt: skip
        assert moved.identity not in result.files
        result.files[moved.identity] = (moved, stored)
        result.next_row_id += len(stored.rows)
    for vector in vectors:
        positions = frozenset(vector.positions)
        path = vector.theirs.referenced
        file = result._file(FileContent.POSITION_DELETES, len(positions), None, path)
        result.files[file.identity] = (file, Stored(positions=positions))
    removed = [file for file in merge.removed if file.is_data]
    new = [*(each.file for each in merge.added), *(each.theirs for each in vectors)]
    result.record(
        SnapshotChanges(
            "overwrite",
            [file.path for file in new if file.is_data],
            [file.path for file in removed],
            [file.referenced for file in new if file.referenced is not None],
            False,
            {file.path: file.first_row_id for file in removed},
            [file.identity for file in merge.removed if not file.is_data],
            merge.gone,
            result.snapshot,
            is_combined=True,
            equality_deletes=[
                file.identity for file in new if file.content is FileContent.EQUALITY_DELETES
            ],
        )
    )
    live = result.tokens()
    replaced = dict(theirs.replaced.items() - base.replaced.items()) | ours.replaced
    result.replaced = {token: new for token, new in replaced.items() if token not in live}
    return result


def merged_base(base: Table, ours: Table, theirs: Table) -> Table | None:
    """Returns what two merge bases give together, None if they do not combine."""
    merge = merge_of(base, ours, theirs)
    if merge.conflicts or merge.unions:
        return None
    result = merged(base, ours, theirs, merge)
    result.merged = merged_state(base.state(base), ours.state(base), theirs.state(base), merge)
    stored = {**ours.files, **theirs.files}
    result.files = {id_: (file, stored[id_][1]) for id_, file in result.merged.files.items()}
    result.history = [*base.history, *ours.history, *theirs.history]
    return result


def merge_of(base: Table, ours: Table, theirs: Table) -> FileMerge:
    """Returns the outcome for the files of two sides."""
    fork = max((number for _, number in ours.listed & theirs.listed), default=0)
    return merge_files(
        base.state(base),
        ours.state(base),
        theirs.state(base),
        fork,
        has_equality_deletes=any(table.has_equality_deletes for table in (base, ours, theirs)),
        scope=EqualityScope([schema(column(1, "key", "int", required=True))]),
    )


def check_merge(base: Table, ours: Table, theirs: Table, *, is_merge: bool = True) -> Table | None:
    """Merges two sides, or applies a commit to ours. Returns the result, None for a conflict."""
    merge = merge_of(base, ours, theirs)
    merge, vectors = united(merge, base, ours, theirs)
    if merge.conflicts:
        return None
    result = merged(base, ours, theirs, merge, vectors)
    b, o, t = base.tokens(), ours.tokens(), theirs.tokens()
    # The changes of a new file that both sides have are changes of all its rows.
    for id_ in (ours.files.keys() & theirs.files.keys()) - base.files.keys():
        b |= Counter(token for token, _ in ours.files[id_][1].rows)
    # Both sides can have restored a row.
    assert result.tokens() == (o - (b - t)) + ((t - b) - (o - b))
    for token in ours.replaced.keys() | theirs.replaced.keys():
        before = base.replaced.get(token)
        after = [side.replaced.get(token) for side in (ours, theirs)]
        changes = [None if each == before else each for each in after]
        if token not in b and None in changes:
            continue
        if token not in o and token not in t and changes[0] != changes[1]:
            # After an update and its revert, a row is that of the base.
            new = [each for each in changes if is_update(each) and each not in b]
            assert not new, "two new versions of one row"
    for file, _ in result.files.values():
        assert file.sequence <= max(merge.sequence, ours.last)
        if file.is_vector:
            assert Identity(file.referenced or "") in result.files
    targets = [file.referenced for file, _ in result.files.values() if file.is_vector]
    assert len(set(targets)) == len(targets), "a file has two deletion vectors"
    if base.version > 2:
        ids = result.row_ids().values()
        assert len(set(ids)) == len(ids)
        assert max(ids, default=-1) < result.next_row_id
    if is_merge:
        assert merge_of(theirs, result, theirs).is_empty
    return result


def is_update(replacement: str | None) -> bool:
    """Returns whether a token was replaced by another one."""
    return replacement is not None and not replacement.startswith(DELETED)


def steps(side: Table, *, equality: bool) -> None:
    """Commits up to three random changes."""
    for _ in range(side.rng.randint(0, 3)):
        side.step(equality=equality)
