"""One side updates rows by their keys, and the other one compacts their files: real files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules, CombinedTable, IcebergTable, RowRules
from tests.iceberg.combination.duck import duckdb_rows
from tests.iceberg.row_diff.tables import Folder
from tests.iceberg.row_merge.keyed import COLUMNS, KeyedTable, Layout, Row, Rows
from tests.iceberg.row_merge.test_histories import KEY, rows_equal, rows_of


def row(text: str) -> Row:
    return {**dict.fromkeys(COLUMNS), "text": text}


START: Rows = {key: row("base") for key in range(6)}
UPDATED: Rows = START | {2: row("new"), 9: row("new")}


class Sides(NamedTuple):
    """A table with two files, on one side with updated rows, on the other one compacted."""

    base: KeyedTable
    updated: KeyedTable
    compacted: KeyedTable

    def merge(self, *, turned: bool, rows: bool = False) -> CombinedTable:
        sides = [
            side.content([1, *(id_ for id_ in side.history if id_ > 1)])
            for side in (self.updated, self.compacted)
        ]
        ours, theirs = reversed(sides) if turned else sides
        states = TableStates(None, "", KEY, KEY, KEY, KEY, self.base.content([1]), ours, theirs)
        rules = CombinationRules(rows=RowRules() if rows else None)
        return FileCombiner(Files(), "a merge", rules).combine(states)


def sides_of(folder: Path, version: int, how: str, number: str) -> Sides:
    """`how` are rows updated; `number` is the sequence number of the compacted file."""
    base = KeyedTable(Folder(folder, version), Layout(size=3, has_bounds=lambda: True))
    base.change(START, "copy", 1)
    updated, compacted = base.fork(), base.fork()
    updated.change(UPDATED, how, 2, 102)
    compacted.layout = Layout(has_bounds=lambda: True)
    compacted.change(START, "compact", 2, 202)
    if number == "starting":
        (entry,) = compacted.files.values()
        entry["sequence_number"] = 1
    return Sides(base, updated, compacted)


def check(content: IcebergTable | None, expected: Rows) -> None:
    assert content is not None
    assert rows_equal(rows_of(content), expected)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("number", ["new", "starting"])
def test_an_upsert_reaches_the_rows_in_their_compacted_file(
    tmp_path: Path, version: int, number: str
) -> None:
    """By an equality delete and a new row: neither says in which file the old row is."""
    sides = sides_of(tmp_path, version, "equality", number)
    for turned in (False, True):
        content = sides.merge(turned=turned).content
        check(content, UPDATED)
        texts = duckdb_rows(content.metadata_location, "text") if content else None
        assert texts == Counter(each["text"] for each in UPDATED.values())


@pytest.mark.parametrize(("version", "how"), [(2, "copy"), (2, "positions"), (3, "positions")])
def test_other_updates_of_a_compacted_file_need_a_merge_of_rows(
    tmp_path: Path, version: int, how: str
) -> None:
    sides = sides_of(tmp_path, version, how, "new")
    for turned in (False, True):
        before = set(tmp_path.rglob("*.parquet"))
        refused = sides.merge(turned=turned)
        assert {collision.reason for collision in refused.collisions} == {
            "both sides removed or rewrote this file"
            if how == "copy"
            else "one side changed rows of this file, and the other one removed or rewrote it"
        }
        assert set(tmp_path.rglob("*.parquet")) == before
        check(sides.merge(turned=turned, rows=True).content, UPDATED)


def test_an_upsert_of_a_row_that_was_added_before_the_compaction(tmp_path: Path) -> None:
    """The equality delete would remove the row of the other side."""
    sides = sides_of(tmp_path, 2, "equality", "new")
    sides.compacted.change(START | {9: row("other")}, "copy", 3, 203)
    sides.compacted.change(sides.compacted.rows, "compact", 4, 204)
    for turned in (False, True):
        refused = sides.merge(turned=turned)
        reason = (
            "the equality deletes of theirs would reach rows that ours changed"
            if turned
            else "the equality deletes of ours would miss rows of files that theirs rewrote"
        )
        assert reason in [collision.reason for collision in refused.collisions]
