"""Random changes of both sides of a keyed table: its merged rows are those of a model.

`NESSIE_TEST_ROW_MERGES=N` is the number of merges.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.iceberg.row_merge.merging import RowMerger
from nessie_cli.model import (
    CombinationRules,
    CombinedTable,
    ContentKey,
    IcebergTable,
    RowDecision,
    RowRules,
    row_key_text,
)
from tests.iceberg.row_diff.tables import Folder
from tests.iceberg.row_merge.keyed import (
    COLUMNS,
    SPECS,
    Conflicts,
    KeyedTable,
    Layout,
    Rows,
    edited,
    merged,
    random_row,
    read_by_rows,
    same,
)

MERGES = int(os.environ.get("NESSIE_TEST_ROW_MERGES", "20"))
KEY = ContentKey(("db", "t"))


def rows_of(content: IcebergTable) -> Rows:
    rows = changed_rows(None, content).read_all().to_pylist()
    by_key = {row["id"]: {name: row[name] for name in COLUMNS} for row in rows}
    assert len(by_key) == len(rows), "a key is there twice"
    return by_key


def combined(
    base: IcebergTable,
    ours: IcebergTable,
    theirs: IcebergTable,
    rules: RowRules,
    files: Files | None = None,
) -> CombinedTable:
    states = TableStates(None, "", KEY, KEY, KEY, KEY, base, ours, theirs)
    combiner = FileCombiner(files or Files(), "a merge", CombinationRules(rows=rules))
    return combiner.combine(states)


def conflicts_of(table: CombinedTable) -> Conflicts:
    assert table.content is None
    return {(row.key["id"], row.column) for each in table.collisions for row in each.rows}


class ReadFiles(Files):
    """Notes the files that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[str] = set()

    def read(self, uri: str) -> bytes:
        self.paths.add(uri)
        return super().read(uri)

    def open(self, uri: str) -> Any:
        self.paths.add(uri)
        return super().open(uri)


def layout_of(rng: random.Random) -> Layout:
    first = rng.choice(SPECS)
    specs = [first, rng.choice(SPECS)] if rng.random() < 0.3 else [first]
    with_bounds = rng.choice([0, 0.9, 1, 1])
    return Layout(specs, rng.choice([2, 4, 100]), lambda: rng.random() < with_bounds)


@pytest.mark.parametrize("number", range(MERGES))
def test_rows_are_those_of_the_model(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(number)
    version = rng.choice([2, 3])
    layout = layout_of(rng)
    keys = rng.choice([10, 40])
    base = KeyedTable(Folder(tmp_path, version, layout.specs[0], layout.specs[1:]), layout)
    base.change({key: random_row(rng) for key in range(0, keys, 2)}, "copy", 1)
    base.spec = rng.randrange(len(layout.specs))
    base.change(edited(base.rows, rng, keys), "positions", 2)
    base.spec = len(layout.specs) - 1
    sides, lines = [base.fork(), base.fork()], [[1, 2], [1, 2]]
    kinds = ["copy", "copy", "positions", "positions", "compact"]
    kinds += ["equality", "wide"] if version == 2 else []
    for side, line in zip(sides, lines, strict=True):
        for sequence in range(3, 3 + rng.randint(1, 2)):
            kind = rng.choice(kinds)
            is_compaction = kind == "compact" and rng.random() < 0.5
            rows = side.rows if is_compaction else edited(side.rows, rng, keys)
            line.append(sequence + 100 * sides.index(side))
            side.change(rows, kind, sequence, line[-1])
    contents = [
        base.content([1, 2]),
        *(s.content(line) for s, line in zip(sides, lines, strict=True)),
    ]
    for content, state in zip(contents, (base, *sides), strict=True):
        assert rows_equal(rows_of(content), state.rows)
    whole = rng.random() < 0.3
    rules = RowRules(whole_rows=whole)
    decided: dict[Any, str] = {}

    def side(key: int, name: str | None) -> str:
        return decided.setdefault((key, name), rng.choice(["ours", "theirs"]))

    ours, theirs = (each.rows for each in sides)
    expected, conflicts = merged(base.rows, ours, theirs, whole=whole, side=side)
    files = ReadFiles()
    result = combined(contents[0], contents[1], contents[2], rules, files)
    mirror = combined(contents[0], contents[2], contents[1], rules)
    if max(map(len, lines)) == 3:
        # The files of more snapshots do not always merge by groups.
        data = {path for state in (base, *sides) for path in state.files}
        assert files.paths & data <= read_by_rows(base, *sides)
    if result.content is None and not any(each.rows for each in result.collisions):
        pytest.fail(str(result.collisions))
    if conflicts and result.content is None:
        assert conflicts_of(result) == conflicts
        assert conflicts_of(mirror) == conflicts
        decisions = tuple(
            RowDecision(KEY, row_key_text({"id": key}), name, side(key, name) == "theirs")
            for key, name in conflicts
        )
        rules = RowRules(whole_rows=whole, decisions=decisions)
        result = combined(contents[0], contents[1], contents[2], rules)
    assert result.content is not None, result.collisions
    assert rows_equal(rows_of(result.content), expected)
    assert rows_equal(with_changes(ours, contents[1], result.content), expected)
    if number % 4 == 0:
        monkeypatch.setattr(RowMerger, "_merged_by_files", lambda _: None)
        undivided = combined(contents[0], contents[1], contents[2], rules)
        assert undivided.content is not None
        assert rows_equal(rows_of(undivided.content), expected)
    if not conflicts:
        assert mirror.content is not None, mirror.collisions
        assert rows_equal(rows_of(mirror.content), expected)


def with_changes(rows: Rows, before: IcebergTable, after: IcebergTable) -> Rows:
    """Applies the rows that differ between two states to the rows of the first one."""
    changes = changed_rows(before, after).read_all().to_pylist()
    deleted, inserted = (
        [row for row in changes if row["_change_type"] in types]
        for types in (("DELETE", "UPDATE_BEFORE"), ("INSERT", "UPDATE_AFTER"))
    )
    assert len(deleted) + len(inserted) == len(changes)
    changed = {key: row for key, row in rows.items() if key not in {row["id"] for row in deleted}}
    assert len(rows) - len(changed) == len(deleted)
    return changed | {row["id"]: {name: row[name] for name in COLUMNS} for row in inserted}


def rows_equal(one: Rows, other: Rows) -> bool:
    return one.keys() == other.keys() and all(
        same(one[key][name], other[key][name]) for key in one for name in COLUMNS
    )
