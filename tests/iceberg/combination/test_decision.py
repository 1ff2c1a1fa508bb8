"""Random histories of two sides of a table: a merge is refused, or gives the rows of both.

A row version is a token that never comes back, so that the model knows where each row is from.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest
from msgspec import structs
from pyroaring import BitMap64

from nessie_cli.iceberg.combination.decision import FileMerge, merge_files
from nessie_cli.iceberg.combination.states import (
    FileContent,
    Identity,
    SnapshotChanges,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.combination.unions import UnitedVector, unite

COUNT = int(os.environ.get("NESSIE_TEST_COMBINATIONS", "4000"))
"""The number of histories. A long run sets it to 1,000,000."""
KEYS = 4

Row = tuple[str, int]
"""A token and the key that equality deletes name."""


class Stored(NamedTuple):
    """What a file contains: rows with the ids that it says, positions in one file, or keys."""

    rows: tuple[Row, ...] = ()
    row_ids: tuple[int | None, ...] = ()
    positions: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class Table:
    """One side of a table, on files in memory."""

    def __init__(self, rng: random.Random, version: int) -> None:
        self.rng, self.version = rng, version
        self.files: dict[Identity, tuple[TableFile, Stored]] = {}
        self.last = self.next_row_id = 0
        self.history: list[SnapshotChanges] = []
        self.updates: set[str] = set()
        """Tokens that were replaced by others, and not only deleted."""
        self.earlier: list[tuple[dict[Identity, tuple[TableFile, Stored]], int, set[str]]] = []
        """The files of earlier states, how much of the history they have, and their updates."""
        self._numbers = iter(range(10**9))

    def fork(self, name: str) -> Table:
        side = Table(self.rng, self.version)
        side.files = dict(self.files)
        side.last, side.next_row_id, side.name = self.last, self.next_row_id, name
        side.earlier = [(files, 0, set()) for files, _, _ in self.earlier]
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

    def row_ids(self) -> dict[str, int]:
        """Returns the id of each row, in format version 3."""
        return {
            row[0]: (file.first_row_id or 0) + position if given is None else given
            for path in self.paths
            for file, stored in [self.files[Identity(path)]]
            for position, row in self.live(path)
            for given in [stored.row_ids[position]]
        }

    def state(self) -> TableState:
        files = {id_: file for id_, (file, _) in self.files.items()}
        return TableState(self.version, self.last, files, self.next_row_id, tuple(self.history))

    # -- writing ---------------------------------------------------------------------------------

    def rows(self, count: int) -> tuple[Row, ...]:
        return tuple(
            (f"{self.name}{next(self._numbers)}", self.rng.randrange(KEYS)) for _ in range(count)
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
    ) -> None:
        self.earlier.append((dict(self.files), len(self.history), set(self.updates)))
        self.last += 1
        ids: dict[str, int] = self.row_ids()
        if updated[0]:
            self.updates.add(updated[0])
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
            file = structs.replace(file, first_row_id=self.next_row_id)
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
            self.files[file.identity] = (file, Stored(keys=keys))
        self.history.append(
            SnapshotChanges(
                operation,
                added,
                removed,
                list(positions or ()),
                bool(keys),
                first_row_ids,
                removed_deletes,
            )
        )

    def _file(
        self, content: FileContent, records: int, sequence: int | None, path: str | None = None
    ) -> TableFile:
        name = f"{self.name}-{next(self._numbers)}"
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
            self.last,
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
                before = set(self.tokens())
                self.commit("overwrite", (new,), keys=frozenset({new[0][1]}))
                self.updates |= before - set(self.tokens())

    def roll_back(self, number: int) -> None:
        files, length, updates = self.earlier[number]
        self.files, self.history, self.updates = dict(files), self.history[:length], set(updates)
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
    ours: Table, theirs: Table, merge: FileMerge, vectors: list[UnitedVector] | None = None
) -> Table:
    """Returns the table that the merge describes, with its history since the state of theirs."""
    result = ours.fork(f"{ours.name}{theirs.name}")
    result.updates = set(ours.updates)
    result.last = merge.sequence
    result.next_row_id = max(ours.next_row_id, theirs.next_row_id)
    for file in merge.removed:
        del result.files[file.identity]
    for added in merge.added:
        file, stored = theirs.files[added.file.identity]
        sequence = merge.sequence if added.sequence is None else added.sequence
        moved = TableFile(
            file.identity, file.content, 0, (), file.records, sequence, merge.sequence,
            merge.sequence, {}, file.referenced, first_row_id=result.next_row_id,
        )  # fmt: skip
        assert moved.identity not in result.files
        result.files[moved.identity] = (moved, stored)
        result.next_row_id += len(stored.rows)
    for vector in vectors or ():
        positions = frozenset(vector.positions)
        path = vector.theirs.referenced
        file = result._file(FileContent.POSITION_DELETES, len(positions), None, path)
        result.files[file.identity] = (file, Stored(positions=positions))
    removed = [file for file in merge.removed if file.is_data]
    deletes = [each.file for each in merge.added] + [each.theirs for each in vectors or ()]
    operation = SnapshotChanges(
        "overwrite",
        deleted_in=[file.referenced for file in deletes if file.referenced is not None],
        removed_deletes=[file.identity for file in merge.removed if not file.is_data],
        removed=[file.path for file in removed],
        row_ids={file.path: file.first_row_id for file in removed},
    )
    result.history = [*ours.history, operation]
    result.earlier.clear()
    return result


def steps(side: Table, *, equality: bool) -> None:
    for _ in range(side.rng.randint(0, 3)):
        side.step(equality=equality)


def check_merge(base: Table, ours: Table, theirs: Table) -> Table | None:
    """Merges two sides. Returns the result, unless it is a conflict."""
    merge = merge_files(base.state(), ours.state(), theirs.state(), base.last)
    merge, vectors = united(merge, base, ours, theirs)
    if merge.conflicts:
        return None
    result = merged(ours, theirs, merge, vectors)
    b, o, t = base.tokens(), ours.tokens(), theirs.tokens()
    # Both sides can have restored a row.
    assert result.tokens() == (o - (b - t)) + ((t - b) - (o - b))
    both = (b - o) & (b - t)
    assert not both or not (set(both) & (ours.updates | theirs.updates))
    for file, _ in result.files.values():
        assert file.sequence <= merge.sequence
        if file.is_vector:
            assert Identity(file.referenced or "") in result.files
    targets = [file.referenced for file, _ in result.files.values() if file.is_vector]
    assert len(set(targets)) == len(targets), "a file has two deletion vectors"
    if base.version > 2:
        ids = result.row_ids().values()
        assert len(set(ids)) == len(ids)
        assert max(ids, default=-1) < result.next_row_id
    unchanged = structs.replace(theirs.state(), history=())
    again = merge_files(unchanged, result.state(), unchanged, theirs.last)
    assert again.is_empty
    return result


def check_again(theirs: Table, result: Table, change: Callable[[Table], object]) -> str:
    """Both sides go on after a merge, and one is merged again, in either direction."""
    rng = result.rng
    later, history = theirs.fork("l"), list(result.history)
    later.earlier.clear()
    for side in (result, later):
        change(side)
    assert result.history[: len(history)] == history
    sides = (result, later) if rng.random() < 0.5 else (later, result)
    return "merged" if check_merge(theirs, *sides) is None else "merged twice"


def check(rng: random.Random, *, version: int, equality: bool) -> str:
    """Runs one history. Returns its outcome."""
    base = Table(rng, version)
    for _ in range(rng.randint(1, 3)):
        base.step(equality=equality)
    base.history.clear()
    ours, theirs = base.fork("o"), base.fork("t")
    for side in (ours, theirs):
        steps(side, equality=equality)
    result = check_merge(base, ours, theirs)
    if result is None:
        # A merge whose one side is unchanged is that side's table.
        assert (ours.files, ours.last) != (base.files, base.last)
        assert (theirs.files, theirs.last) != (base.files, base.last)
        return "conflict"
    return check_again(theirs, result, lambda side: steps(side, equality=equality))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("equality", [False, True], ids=["", "equality deletes"])
def test_a_merge_is_refused_or_gives_the_rows_of_both(version: int, equality: bool) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT // 6):
        outcomes[
            check(random.Random(f"{version}{equality}{seed}"), version=version, equality=equality)
        ] += 1
    # A merge that always refuses would pass every other check.
    assert outcomes["conflict"] < 0.5 * outcomes.total()
    assert outcomes["merged twice"] > 0.2 * outcomes.total()


def change_one_file(side: Table, path: str) -> None:
    """Deletes and updates rows of a data file, appends, and rolls back."""
    for _ in range(side.rng.randint(1, 2)):
        live = side.live(path)
        operation = side.rng.choice(["delete", "delete", "delete", "update", "append", "back"])
        if operation == "append":
            side.commit("append", (side.rows(1),))
        elif operation == "back":
            if side.earlier and Identity(path) in side.earlier[-1][0]:
                side.roll_back(len(side.earlier) - 1)
        elif live:
            side.delete(path, side.rng.choice(live), is_updated=operation == "update")


def test_both_sides_delete_rows_of_one_file() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT // 6):
        rng = random.Random(f"vectors{seed}")
        # The rows of an upgraded table can be deleted by older files.
        base = Table(rng, rng.choice([2, 3, 3]))
        base.commit("append", (base.rows(8),))
        (path,) = base.paths
        for _ in range(rng.randint(0, 2)):
            base.delete(path, rng.choice(base.live(path)), is_updated=False)
        base.version = 3
        base.history.clear()
        ours, theirs = base.fork("o"), base.fork("t")
        for side in (ours, theirs):
            change_one_file(side, path)
        result = check_merge(base, ours, theirs)
        if result is None:
            outcomes["conflict"] += 1
        else:
            outcomes[check_again(theirs, result, lambda side: change_one_file(side, path))] += 1  # noqa: B023
    assert outcomes["conflict"] < 0.3 * outcomes.total(), outcomes
    assert outcomes["merged twice"] > 0.5 * outcomes.total(), outcomes


@pytest.mark.parametrize("has_other_ids", [False, True])
def test_a_file_whose_rows_have_other_ids_on_ours_is_not_combined(has_other_ids: bool) -> None:
    """The sides were combined before, and ours gave the rows of theirs new ids.

    Then theirs rewrote them with their old ids, which ours has given to rows of its own.
    """
    base = Table(random.Random(1), 3)
    base.commit("append", (base.rows(3),))
    base.commit("append", (base.rows(2),))
    (path,) = base.paths[1:]
    base.history.clear()
    ours, theirs = base.fork("o"), base.fork("t")
    ours.commit("append", (ours.rows(1),))
    if has_other_ids:
        file, stored = ours.files[Identity(path)]
        ours.files[Identity(path)] = (structs.replace(file, first_row_id=900), stored)
    theirs.commit("replace", (theirs.rows(2),), (path,))
    merge = merge_files(base.state(), ours.state(), theirs.state(), base.last)
    reasons = [conflict.reason for conflict in merge.conflicts]
    assert any("rows with these ids" in reason for reason in reasons) is has_other_ids


def test_files_of_unknown_origin_are_not_combined() -> None:
    """Ours was replaced, or its snapshots have expired."""
    base = Table(random.Random(1), 2)
    ours, theirs = base.fork("o"), base.fork("t")
    for side in (ours, theirs):
        side.commit("append", (side.rows(1),))
    unknown = structs.replace(ours.state(), history=None)
    (conflict,) = merge_files(base.state(), unknown, theirs.state(), base.last).conflicts
    assert conflict.reason.startswith("the snapshots of ours do not lead back to the base")
