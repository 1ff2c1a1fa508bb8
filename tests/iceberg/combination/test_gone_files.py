"""Data files that both sides had without the base, as after a pick, and that are gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

from nessie_cli.iceberg.combination.file_merge import FileConflict
from tests.iceberg.combination.test_combination import Change, Lake, append, delete, ids


@pytest.fixture(params=[1, 2])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(tmp_path, request.param)


def drop_both(table: Table) -> None:
    table.delete("id in (4, 5)")


@pytest.mark.parametrize("change", [delete(5), delete(4), drop_both])
def test_a_picked_file_that_both_sides_rewrote(lake: Lake, change: Change) -> None:
    picked = lake.branch("picked", append(4, 5))
    ours = lake.branch("ours", append(6), delete(4), start=picked)
    theirs = lake.branch("theirs", change, start=picked)
    for sides in ((ours, theirs), (theirs, ours)):
        (conflict,) = lake.combine(*sides).conflicts
        assert isinstance(conflict, FileConflict)
        assert conflict.reason == (
            "both sides had data files that the base does not have, and removed or rewrote them"
        )


def test_a_file_that_was_rewritten_before_it_was_picked(lake: Lake) -> None:
    picked = lake.branch("picked", append(4, 5), delete(4))
    ours = lake.branch("ours", append(6), start=picked)
    theirs = lake.branch("theirs", append(7), start=picked)
    assert ids(lake.combined(ours, theirs)) == [1, 2, 3, 5, 6, 7]


def test_a_picked_file_that_both_sides_dropped(lake: Lake) -> None:
    picked = lake.branch("picked", append(4, 5))
    ours = lake.branch("ours", append(6), drop_both, start=picked)
    theirs = lake.branch("theirs", append(7), drop_both, start=picked)
    assert ids(lake.combined(ours, theirs)) == [1, 2, 3, 6, 7]
