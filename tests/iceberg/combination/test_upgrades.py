"""One side upgrades a table to format version 3, and the other one changes rows: real files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pyiceberg.table import Table

from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules, CombinedTable, ContentKey, RowRules
from tests.iceberg.combination.duck import duckdb_rows
from tests.iceberg.combination.test_combination import Change, append, rows
from tests.iceberg.combination.test_vectors import VectorLake, content, reasons

KEY = ContentKey(("t",))
REFUSED = "one side changed the format version"
START = dict.fromkeys(range(1, 7), "x")


@pytest.fixture
def lake(tmp_path: Path) -> VectorLake:
    return VectorLake(tmp_path)


def update(id_: int) -> Change:
    def change(table: Table) -> None:
        table.overwrite(rows(id_, v="new"), f"id == {id_}")

    return change


def by_rows(lake: VectorLake, ours: str, theirs: str) -> CombinedTable:
    states = (content(lake, location) for location in (lake.older, ours, theirs))
    rules = CombinationRules(rows=RowRules(key=("id",)))
    return FileCombiner(Files(), "merge", rules).combine(
        TableStates(None, "", KEY, KEY, KEY, KEY, *states)
    )


def check(location: str, expected: Mapping[int, str]) -> None:
    """Checks the ids and texts of the rows."""
    assert duckdb_rows(location, "(id, v)") == Counter(expected.items())


def test_an_upgrade_beside_changed_rows_is_a_conflict(lake: VectorLake) -> None:
    changed = lake.branch("changed", append(7), update(2), start=lake.older)
    for upgraded in (lake.base, lake.deleting(lake.base, 1)):
        lake.written.clear()
        for sides in ((upgraded, changed), (changed, upgraded)):
            assert REFUSED in reasons(lake, lake.older, *sides)
        assert lake.written == []


def test_a_merge_of_rows_keeps_the_upgrade_of_ours(lake: VectorLake) -> None:
    theirs = lake.branch("theirs", update(2), append(7), start=lake.older)
    merged = by_rows(lake, lake.deleting(lake.base, 1), theirs).content
    assert merged is not None
    assert lake._document(merged.metadata_location)["format-version"] == 3
    expected = START | {2: "new", 7: "x"}
    del expected[1]
    check(merged.metadata_location, expected)


def test_a_merge_of_rows_does_not_lose_the_upgrade_of_theirs(lake: VectorLake) -> None:
    ours = lake.branch("ours", update(2), start=lake.older)
    for theirs in (lake.base, lake.deleting(lake.base, 1)):
        refused = by_rows(lake, ours, theirs)
        assert refused.content is None
        assert REFUSED in [collision.reason for collision in refused.collisions]


@pytest.mark.parametrize(
    ("deleted", "changes", "expected"),
    [
        ([], [append(7), update(2)], START | {2: "new", 7: "x"}),
        ([1, 2, 3, 4, 5], [append(7)], {6: "x", 7: "x"}),
    ],
)
def test_sides_that_were_both_upgraded_combine(
    lake: VectorLake, deleted: list[int], changes: Sequence[Change], expected: Mapping[int, str]
) -> None:
    here = lake.deleting(lake.base, *deleted) if deleted else lake.base
    there = lake.upgraded(lake.branch("theirs", *changes, start=lake.older))
    for sides in ((here, there), (there, here)):
        check(lake.combined(*sides, lake.older), expected)
