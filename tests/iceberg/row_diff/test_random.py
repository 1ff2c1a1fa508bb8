"""Random histories on two branches, against the difference of multisets of Python values."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables
from tests.iceberg.row_diff.tables import CountingFiles, Document, Folder, column, schema

IDS = {"id": 1, "v": 2, "l": 3}
SCHEMA = schema(
    column(1, "id", "long"),
    column(2, "v", "double"),
    column(
        3,
        "l",
        {"type": "list", "element-id": 4, "element": "string", "element-required": False},
    ),
)
ARROW = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("l", pa.list_(pa.string()))])
Row = tuple[Any, ...]


def rows_of(numbers: random.Random, count: int) -> list[Row]:
    return [
        (
            numbers.randrange(40),
            numbers.choice([math.nan, 0.0, -0.0, 1.5, None]),
            numbers.choice([None, [], ["a"], [None]]),
        )
        for _ in range(count)
    ]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.table(
        [list(values) for values in zip(*rows, strict=True)] if rows else [[], [], []], schema=ARROW
    )


class Side:
    """A branch of the table: its files, and the rows of each data file with None if deleted."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.entries: list[Document] = []
        self.rows: dict[str, list[Row | None]] = {}
        self.sequences: dict[str, int] = {}
        self.sequence = 0

    def branch(self) -> Side:
        other = Side(self.folder)
        other.entries, other.rows = list(self.entries), deepcopy(self.rows)
        other.sequences, other.sequence = dict(self.sequences), self.sequence
        return other

    def live(self) -> list[Row]:
        return [row for rows in self.rows.values() for row in rows if row is not None]

    def change(self, numbers: random.Random) -> None:
        self.sequence += 1
        operations: list[Callable[[random.Random], None]] = [self.append]
        if self.live():
            operations += [self.delete, self.delete_equal, self.rewrite, self.update]
        numbers.choice(operations)(numbers)

    def append(self, numbers: random.Random) -> None:
        self.write(rows_of(numbers, numbers.randint(1, 12)))

    def write(self, rows: list[Row]) -> None:
        entry = self.folder.data(arrow(rows), IDS, self.sequence, row_group_size=4)
        path = entry["data_file"]["file_path"]
        self.entries.append(entry)
        self.rows[path] = list(rows)
        self.sequences[path] = self.sequence

    def delete(self, numbers: random.Random) -> None:
        """Deletes by position: in version 3, a new vector contains all deletes of a file."""
        deleted = {
            path: [n for n, row in enumerate(rows) if row is not None and numbers.random() < 0.3]
            for path, rows in self.rows.items()
            if numbers.random() < 0.7
        }
        deleted = {path: positions for path, positions in deleted.items() if positions}
        if not deleted:
            return
        if self.folder.version == 2:
            together = numbers.random() < 0.5
            for part in [deleted] if together else [{path: deleted[path]} for path in deleted]:
                named = not together and numbers.random() < 0.5
                self.entries.append(self.folder.positions(part, self.sequence, named=named))
        else:
            whole = {
                path: sorted({*positions, *self.vector(path)})
                for path, positions in deleted.items()
            }
            self.entries = [
                entry
                for entry in self.entries
                if entry["data_file"].get("referenced_data_file") not in whole
            ]
            self.entries += self.folder.vectors(whole, self.sequence)
        for path, positions in deleted.items():
            for position in positions:
                self.rows[path][position] = None

    def vector(self, path: str) -> list[int]:
        """The positions that vectors deleted so far. Those of equality deletes do not matter."""
        return [n for n, row in enumerate(self.rows[path]) if row is None]

    def delete_equal(self, numbers: random.Random) -> None:
        values = [row[:1] for row in numbers.sample(self.live(), 1)]
        equal = arrow([(*value, None, None) for value in values]).select(["id"])
        self.entries.append(self.folder.equality(equal, {"id": 1}, self.sequence))
        for path, rows in self.rows.items():
            if self.sequences[path] < self.sequence:
                self.rows[path] = [row if row and row[:1] not in values else None for row in rows]

    def rewrite(
        self, numbers: random.Random, change: Callable[[Row], Row] = lambda row: row
    ) -> None:
        paths = [path for path in self.rows if numbers.random() < 0.5]
        rows = [change(row) for path in paths for row in self.rows[path] if row is not None]
        self.entries = [e for e in self.entries if e["data_file"]["file_path"] not in paths]
        for path in paths:
            del self.rows[path]
        numbers.shuffle(rows)
        self.write(rows)

    def update(self, numbers: random.Random) -> None:
        self.rewrite(numbers, lambda row: (row[0], 7.25, row[2]) if row[0] % 5 == 0 else row)

    def state(self) -> Document:
        return self.folder.state(self.entries, SCHEMA, snapshots=(self.sequence,))


@pytest.mark.parametrize("seed", range(30))
def test_the_changes_are_the_difference_of_the_rows(seed: int, tmp_path: Path) -> None:
    numbers = random.Random(seed)
    base = Side(Folder(tmp_path, version=2 + seed % 2))
    for _ in range(numbers.randint(1, 4)):
        base.change(numbers)
    old, new = base.branch(), base.branch()
    for side in (old, new):
        for _ in range(numbers.randint(0, 4)):
            side.change(numbers)
        side.sequence += numbers.choice([10, 20])
    for before, after in ((old, new), (new, old), (base, new), (None, old), (new, None)):
        check(before, after, numbers)


def check(before: Side | None, after: Side | None, numbers: random.Random) -> None:
    rows = [side.live() if side else [] for side in (before, after)]
    old, new = (Counter(map(repr, each)) for each in rows)
    documents = [side.state() if side else None for side in (before, after)]
    part = numbers.choice([3, 200_000])

    def changes(**selection: Any) -> tuple[list[tuple[str, Row]], RowChanges]:
        files = CountingFiles()
        difference = compare_tables(*documents, files.read, Selection(**selection))
        changes = RowChanges(difference, files, rows_of_part=part)
        read = [
            (row.pop("_change_type"), tuple(row.values()))
            for batch in changes
            for row in batch.to_pylist()
        ]
        assert files.read_bytes <= difference.bytes * 1.2
        return read, changes

    def of(read: list[tuple[str, Row]], *kinds: str) -> Counter[str]:
        return Counter(repr(row) for kind, row in read if kind in kinds)

    read, _ = changes()
    assert of(read, "INSERT") == new - old
    assert of(read, "DELETE") == old - new
    assert len(read) == (new - old).total() + (old - new).total()

    read, keyed = changes(key=["id"])
    assert of(read, "INSERT", "UPDATE_AFTER") == new - old
    assert of(read, "DELETE", "UPDATE_BEFORE") == old - new
    updates = [(a, b) for (kind, a), (_, b) in pairwise(read) if kind == "UPDATE_BEFORE"]
    assert all(a[0] == b[0] for a, b in updates)
    keys = [
        Counter(row[0] for kind, row in read if kind in kinds)
        for kinds in (("INSERT", "UPDATE_AFTER"), ("DELETE", "UPDATE_BEFORE"))
    ]
    both = keys[0].keys() & keys[1].keys()
    pairs = {key for key in both if keys[0][key] == keys[1][key] == 1}
    assert {a[0] for a, _ in updates} == pairs
    assert keyed.ambiguous_keys == len(both - pairs)
