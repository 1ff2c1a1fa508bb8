"""One side upgrades a table to format version 3, and the other one changes rows: real files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.table import Table

from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules, CombinedTable, ContentKey, RowRules
from tests.iceberg.combination.duck import duckdb_rows
from tests.iceberg.combination.test_combination import Change, append, ids, rows
from tests.iceberg.combination.test_vectors import VectorLake, content, reasons

KEY = ContentKey(("t",))
REFUSED = ["one side changed the format version"]


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


def texts(location: str) -> Counter[tuple[int, str]]:
    """Returns the ids and texts of the rows. PyIceberg must read the same ids."""
    ids(location)
    return duckdb_rows(location, "(id, v)")


@pytest.mark.parametrize("deleted", [[], [1]])
@pytest.mark.parametrize("change", [append(7), update(2)])
def test_an_upgrade_beside_changed_rows_is_a_conflict(
    lake: VectorLake, deleted: list[int], change: Change
) -> None:
    upgraded = lake.deleting(lake.base, *deleted) if deleted else lake.base
    changed = lake.branch("changed", change, start=lake.older)
    lake.written.clear()
    for sides in ((upgraded, changed), (changed, upgraded)):
        assert REFUSED[0] in reasons(lake, lake.older, *sides)
    assert lake.written == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_merge_of_rows_keeps_the_upgrade_of_ours(lake: VectorLake, number: int) -> None:
    ours = lake.deleting(lake.base, *range(1, number)) if number > 1 else lake.base
    theirs = lake.branch("theirs", update(2), append(7), start=lake.older)
    merged = by_rows(lake, ours, theirs).content
    assert merged is not None
    assert lake._document(merged.metadata_location)["format-version"] == 3
    expected = dict.fromkeys(range(number, 8), "x") | {2: "new"}
    assert texts(merged.metadata_location) == Counter(expected.items())


def test_a_merge_of_rows_does_not_lose_the_upgrade_of_theirs(lake: VectorLake) -> None:
    ours = lake.branch("ours", update(2), start=lake.older)
    for theirs in (lake.base, lake.deleting(lake.base, 1)):
        refused = by_rows(lake, ours, theirs)
        assert refused.content is None
        assert REFUSED[0] in [collision.reason for collision in refused.collisions]


@pytest.mark.parametrize(
    ("deleted", "changes", "expected"),
    [
        ([], [update(2)], {2: "new"}),
        ([], [append(7), update(7)], {7: "new"}),
        ([1], [append(7)], {1: None, 7: "x"}),
    ],
)
def test_sides_that_were_both_upgraded_combine(
    lake: VectorLake, deleted: list[int], changes: list[Change], expected: dict[int, str | None]
) -> None:
    here = lake.deleting(lake.base, *deleted) if deleted else lake.base
    there = lake.upgraded(lake.branch("theirs", *changes, start=lake.older))
    model = dict.fromkeys(range(1, 7), "x") | expected
    rows_of_model = Counter(pair for pair in model.items() if pair[1] is not None)
    for sides in ((here, there), (there, here)):
        assert texts(lake.combined(*sides, lake.older)) == rows_of_model
