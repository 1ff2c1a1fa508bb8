"""Merges of tables from which one side has expired snapshots: no live file changed there."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.types import StringType

from tests.cli.lake import Lake
from tests.cli.test_content_expire import metadata, snapshots
from tests.command.in_process import InProcess

EXPIRE = ("content", "expire", "db.t", "--older-than", "0s")
Change = Callable[[Lake, str], list[int]]
"""Changes the table of a branch with the rows 1, 2, 3, 10, 11. Returns its rows."""


def append(lake: Lake, ref: str) -> list[int]:
    lake.append(ref, 20)
    return [1, 2, 3, 10, 11, 20]


def delete(lake: Lake, ref: str) -> list[int]:
    lake.delete(ref, 2)
    return [1, 3, 10, 11]


def compact(lake: Lake, ref: str) -> list[int]:
    with lake.table(ref) as table:
        table.overwrite(table.scan().to_arrow())
    return [1, 2, 3, 10, 11]


def add_columns(lake: Lake, ref: str) -> list[int]:
    """Adds a column, and one that is gone again."""
    with lake.table(ref) as table:
        with table.update_schema() as update:
            update.add_column("a", StringType())
            update.add_column("b", StringType())
        with table.update_schema() as update:
            update.delete_column("b")
    return append(lake, ref)


CHANGES = pytest.mark.parametrize("change", [append, delete, compact, add_columns])


@pytest.fixture
def forked(nessie: InProcess, lake: Lake) -> Lake:
    """A lake whose branches begin at the third snapshot."""
    lake.append("main", 10)
    lake.append("main", 11)
    assert nessie("branch", "-f", "dev", "main").code == 0
    return lake


def merge(nessie: InProcess, source: str, target: str) -> None:
    ran = nessie("merge", source, "--into", target)
    assert ran.code == 0, ran.err


@CHANGES
@pytest.mark.parametrize("expiring", ["main", "dev"])
@pytest.mark.parametrize("into", ["main", "dev"])
def test_an_expiry_combines_with_changes(
    nessie: InProcess, forked: Lake, change: Change, expiring: str, into: str
) -> None:
    other = "dev" if expiring == "main" else "main"
    assert nessie(*EXPIRE, "--ref", expiring).code == 0
    assert len(snapshots(forked, expiring)) == 1
    rows = change(forked, other)
    newest = snapshots(forked, other)[-1]
    merge(nessie, "dev" if into == "main" else "main", into)
    assert forked.ids(into) == rows
    # The removal wins: no snapshot from before the fork is there again.
    listed = snapshots(forked, into)
    assert set(listed).isdisjoint(snapshots(forked, other)[:2] if other != into else ())
    assert len(listed) <= len(snapshots(forked, other)) - (2 if other != into else 0)
    if other == into:
        assert listed[-1] == newest
    assert nessie("audit").code == 0


@CHANGES
@pytest.mark.parametrize("into", ["main", "dev"])
def test_both_sides_change_and_one_expires(
    nessie: InProcess, forked: Lake, change: Change, into: str
) -> None:
    old = snapshots(forked)[:2]
    forked.append("main", 30)
    rows = sorted([*change(forked, "dev"), 30])
    # Everything before the merge base goes.
    assert nessie(*EXPIRE, "--ref", "main").code == 0
    assert len(snapshots(forked, "main")) == 2
    merge(nessie, "dev" if into == "main" else "main", into)
    assert forked.ids(into) == rows
    if into == "dev":
        assert set(snapshots(forked, "dev")).isdisjoint(old)


def test_both_sides_expire(nessie: InProcess, forked: Lake) -> None:
    forked.append("main", 30)
    forked.append("dev", 40)
    assert nessie(*EXPIRE, "--ref", "main").code == 0
    assert nessie(*EXPIRE, "--ref", "dev").code == 0
    merge(nessie, "dev", "main")
    assert forked.ids("main") == [1, 2, 3, 10, 11, 30, 40]


def test_an_expiry_after_a_merge_loses_nothing_in_the_next_merges(
    nessie: InProcess, forked: Lake
) -> None:
    for number in range(3):
        forked.append("main", 100 + number)
        forked.append("dev", 200 + number)
        merge(nessie, *(("dev", "main") if number % 2 else ("main", "dev")))
        for ref in ("main", "dev"):
            assert nessie(*EXPIRE, "--ref", ref).code == 0
    merge(nessie, "dev", "main")
    assert forked.ids("main") == [1, 2, 3, 10, 11, *range(100, 103), *range(200, 203)]


def test_unused_specs_that_went_do_not_come_back(nessie: InProcess, lake: Lake) -> None:
    with lake.table("main") as table:
        for name in ("v", "n"):
            with table.update_spec() as spec:
                spec.add_identity(name)
        table.overwrite(table.scan().to_arrow())
    assert nessie("branch", "-f", "dev", "main").code == 0
    assert nessie(*EXPIRE).code == 0
    lake.append("dev", 20)
    with lake.table("dev") as table, table.update_spec() as spec:
        spec.add_identity("id")
    merge(nessie, "dev", "main")
    assert [each["spec-id"] for each in metadata(lake)["partition-specs"]] == [2, 3]
    assert lake.ids("main") == [1, 2, 3, 20]


def test_a_revert_of_a_commit_removes_no_snapshot(nessie: InProcess, forked: Lake) -> None:
    forked.append("main", 30)
    forked.append("main", 31)
    before = snapshots(forked)
    assert nessie("revert", "main~1").code == 0
    assert forked.ids("main") == [1, 2, 3, 10, 11, 31]
    assert snapshots(forked)[: len(before)] == before


def test_a_snapshot_that_a_tag_of_ours_names_stays(nessie: InProcess, forked: Lake) -> None:
    first = snapshots(forked)[0]
    with forked.table("main") as table, table.manage_snapshots() as manage:
        manage.create_tag(first, "v1")
    forked.append("main", 30)
    assert nessie(*EXPIRE, "--ref", "dev").code == 0
    merge(nessie, "dev", "main")
    assert snapshots(forked)[0] == first
    assert len(snapshots(forked)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_random_expiries_between_merges_keep_every_row(
    nessie: InProcess, forked: Lake, seed: int
) -> None:
    rng, ids = random.Random(seed), count(1000)
    rows = {ref: {1, 2, 3, 10, 11} for ref in ("main", "dev")}
    base = {1, 2, 3, 10, 11}
    for _ in range(16):
        ref = rng.choice(["main", "dev"])
        step = rng.choice(["append", "append", "expire", "expire", "merge", "compact"])
        if step == "append":
            id_ = next(ids)
            forked.append(ref, id_)
            rows[ref].add(id_)
        elif step == "compact" and ref == "main":
            compact(forked, ref)
        elif step == "expire":
            keep = str(rng.randint(1, 3))
            assert nessie(*EXPIRE, "--ref", ref, "--keep-last", keep).code == 0
        elif step == "merge":
            other = "dev" if ref == "main" else "main"
            ran = nessie("merge", other, "--into", ref)
            if ran.code == 0:
                rows[ref] = base | rows[ref] | rows[other]
                base = set(rows[other])
            else:
                # Both sides rewrote one file, without any expiry, too.
                assert "do not lead back to the base" not in ran.err
        assert forked.ids(ref) == sorted(rows[ref])
    assert nessie("audit").code == 0
    assert Path(".nessie").is_dir()
