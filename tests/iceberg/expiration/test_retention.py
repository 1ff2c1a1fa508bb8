"""Iceberg's rules of retention: cases from `TestRemoveSnapshots` of its library (1.11).

`tests/spark/test_retention.py` compares the rules with Iceberg's own library.
https://github.com/apache/iceberg/tree/main/core/src/test/java/org/apache/iceberg
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.expiration.retention import ExpiryRule, Retained, retained

NOW = 1_800_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


class Snapshot(NamedTuple):
    id: int
    parent: int | None
    days: float
    """The age."""


def line(*days: float) -> list[Snapshot]:
    """Snapshots 1, 2, ... of these ages, each on top of the one before."""
    return [Snapshot(id_, id_ - 1 or None, age) for id_, age in enumerate(days, 1)]


def branch(id_: int, **settings: int) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in settings.items()}
    return {"snapshot-id": id_, "type": "branch", **named}


def tag(id_: int, **settings: int) -> dict[str, Any]:
    return {**branch(id_, **settings), "type": "tag"}


def document(
    snapshots: list[Snapshot], refs: dict[str, Any], properties: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "current-snapshot-id": refs["main"]["snapshot-id"] if "main" in refs else -1,
        "properties": properties or {},
        "refs": refs,
        "snapshots": [
            {
                "snapshot-id": each.id,
                "timestamp-ms": NOW - int(each.days * DAY),
                **({} if each.parent is None else {"parent-snapshot-id": each.parent}),
            }
            for each in snapshots
        ],
    }


class Case(NamedTuple):
    snapshots: list[Snapshot]
    refs: dict[str, Any]
    keeps: set[int]
    older_than: float | None = None
    """In days before now."""
    keep_last: int | None = None
    properties: dict[str, str] | None = None
    removed_refs: tuple[str, ...] = ()


TWO_LINES = [*line(40, 30, 20, 10), Snapshot(11, 2, 29), Snapshot(12, 11, 9)]
"""Two lines: 1, 2, 3, 4 and 1, 2, 11, 12."""
CASES = {
    "five days and one snapshot by default": Case(line(7, 6, 4, 1), {"main": branch(4)}, {3, 4}),
    "the current snapshot stays, however old": Case(line(90, 80), {"main": branch(2)}, {2}),
    "expire older than": Case(line(9, 8, 2), {"main": branch(3)}, {2, 3}, older_than=8.5),
    "the very time stays": Case(line(9, 8, 2), {"main": branch(3)}, {2, 3}, older_than=8),
    "retain last counts from the head": Case(
        line(9, 8, 7, 6), {"main": branch(4)}, {2, 3, 4}, older_than=0, keep_last=3
    ),
    "retain more than there are": Case(
        line(9, 8), {"main": branch(2)}, {1, 2}, older_than=0, keep_last=5
    ),
    "properties of the table": Case(
        line(9, 8, 7, 6),
        {"main": branch(4)},
        {3, 4},
        properties={
            "history.expire.max-snapshot-age-ms": "1",
            "history.expire.min-snapshots-to-keep": "2",
        },
    ),
    "the caller counts more than properties": Case(
        line(9, 8, 7, 6),
        {"main": branch(4)},
        {4},
        older_than=5,
        keep_last=1,
        properties={
            "history.expire.max-snapshot-age-ms": str(90 * DAY),
            "history.expire.min-snapshots-to-keep": "4",
        },
    ),
    "a branch counts more than the caller": Case(
        line(9, 8, 7, 6),
        {"main": branch(4, min_snapshots_to_keep=3)},
        {2, 3, 4},
        older_than=0,
        keep_last=1,
    ),
    "the age of a branch counts more than the caller": Case(
        line(9, 8, 7, 6), {"main": branch(4, max_snapshot_age_ms=7 * DAY)}, {3, 4}, older_than=0
    ),
    "the walk ends at the first snapshot that is too old": Case(
        # 2 is younger than 3, by a clock that was wrong.
        [Snapshot(1, None, 9), Snapshot(2, 1, 1), Snapshot(3, 2, 8), Snapshot(4, 3, 1)],
        {"main": branch(4)},
        {4},
        older_than=5,
    ),
    "a tag keeps its snapshot, but not the ones before": Case(
        line(9, 8, 7, 6), {"main": branch(4), "v1": tag(2)}, {2, 4}, older_than=0
    ),
    "an old tag goes": Case(
        line(9, 8, 7, 6),
        {"main": branch(4), "v1": tag(2, max_ref_age_ms=7 * DAY)},
        {4},
        older_than=5,
        removed_refs=("v1",),
    ),
    "a tag of exactly its age stays": Case(
        line(9, 8, 7, 6),
        {"main": branch(4), "v1": tag(2, max_ref_age_ms=8 * DAY)},
        {2, 4},
        older_than=5,
    ),
    "an old branch goes": Case(
        TWO_LINES,
        {"main": branch(4), "dev": branch(12, max_ref_age_ms=8 * DAY)},
        {4},
        older_than=1,
        removed_refs=("dev",),
    ),
    "references expire by a property": Case(
        TWO_LINES,
        {"main": branch(4), "dev": branch(12)},
        {4},
        older_than=1,
        properties={"history.expire.max-ref-age-ms": str(8 * DAY)},
        removed_refs=("dev",),
    ),
    "main never expires": Case(
        line(9, 8), {"main": branch(2, max_ref_age_ms=1)}, {2}, older_than=1
    ),
    "each branch keeps its own number": Case(
        TWO_LINES,
        {
            "main": branch(4, min_snapshots_to_keep=3),
            "dev": branch(12, min_snapshots_to_keep=2),
        },
        {2, 3, 4, 11, 12},
        older_than=0,
    ),
    "each branch keeps its own age": Case(
        TWO_LINES,
        {"main": branch(4), "dev": branch(12, max_snapshot_age_ms=35 * DAY)},
        {2, 4, 11, 12},
        older_than=0,
    ),
    "a snapshot on no branch stays while it is young": Case(
        [*line(9, 8), Snapshot(7, 1, 1)], {"main": branch(2)}, {2, 7}, older_than=5
    ),
    "a snapshot on no branch goes when it is old": Case(
        [*line(9, 8), Snapshot(7, 1, 6)], {"main": branch(2)}, {2}, older_than=5
    ),
    "the parent of a tag is on no branch": Case(
        [*line(9, 8), Snapshot(7, 1, 7), Snapshot(8, 7, 1)],
        {"main": branch(2), "v1": tag(8)},
        {2, 8},
        older_than=5,
    ),
    "the parent of a branch is on one": Case(
        # 7 is young, but its branch decides.
        [*line(9, 8), Snapshot(7, 1, 1), Snapshot(8, 7, 1)],
        {"main": branch(2), "dev": branch(8, max_snapshot_age_ms=1)},
        {2, 8},
        older_than=5,
    ),
    "snapshots of an expired branch count as unreferenced": Case(
        [*line(9, 8), Snapshot(7, 1, 3), Snapshot(8, 7, 2)],
        {"main": branch(2), "dev": branch(8, max_ref_age_ms=DAY)},
        {2, 7, 8},
        older_than=5,
        removed_refs=("dev",),
    ),
    "after a rollback, the later snapshots are on no branch": Case(
        line(9, 8, 7, 1), {"main": branch(2)}, {2, 4}, older_than=5
    ),
    "a reference to a missing snapshot goes": Case(
        line(9, 8), {"main": branch(2), "v1": tag(77)}, {2}, older_than=1, removed_refs=("v1",)
    ),
    "a line with a gap ends there": Case(
        [Snapshot(1, None, 9), Snapshot(3, 2, 8)], {"main": branch(3)}, {3}, older_than=1,
        keep_last=5,
    ),
    "no snapshots": Case([], {}, set(), older_than=0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rules_are_those_of_icebergs_library(case: Case) -> None:
    older_than = None if case.older_than is None else NOW - int(case.older_than * DAY)
    given = document(case.snapshots, case.refs, case.properties)
    rule = ExpiryRule(older_than, case.keep_last)
    assert retained(given, rule, NOW) == Retained(frozenset(case.keeps), case.removed_refs)


def test_a_current_snapshot_without_a_branch_stays() -> None:
    given = {**document(line(9, 8), {}), "current-snapshot-id": 2}
    assert retained(given, ExpiryRule(NOW), NOW).snapshots == {2}


def test_a_property_that_is_no_integer_is_named() -> None:
    given = document(line(9), {"main": branch(1)}, {"history.expire.max-snapshot-age-ms": "5d"})
    with pytest.raises(InvalidInput, match="max-snapshot-age-ms: must be an integer, not '5d'"):
        retained(given, ExpiryRule(), NOW)
