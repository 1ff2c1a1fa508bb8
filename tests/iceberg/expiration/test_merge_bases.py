"""Which parts of a table are kept for merges with another branch."""

from __future__ import annotations

from typing import Any

from nessie_cli.iceberg.expiration.merge_bases import Needed, needed_since


def state(
    current: int,
    *snapshots: tuple[int, int | None],
    schemas: dict[int, list[str]] | None = None,
    specs: dict[int, list[str]] | None = None,
    version: int = 2,
) -> dict[str, Any]:
    """Returns metadata. Snapshots are pairs of an id, which is also an age, and a parent."""
    columns = schemas or {0: ["id"]}
    fields = specs or {0: []}
    return {
        "current-snapshot-id": current,
        "snapshots": [
            {
                "snapshot-id": id_,
                "timestamp-ms": 1000 + id_,
                **({"sequence-number": id_} if version > 1 else {}),
                **({} if parent is None else {"parent-snapshot-id": parent}),
            }
            for id_, parent in snapshots
        ],
        "current-schema-id": max(columns),
        "schemas": [
            {
                "type": "struct",
                "schema-id": id_,
                "fields": [
                    {"id": number, "name": name, "required": False, "type": "long"}
                    for number, name in enumerate(names, 1)
                ],
            }
            for id_, names in columns.items()
        ],
        "default-spec-id": max(fields),
        "partition-specs": [
            {
                "spec-id": id_,
                "fields": [
                    {"field-id": 1000, "source-id": 1, "name": name, "transform": "identity"}
                    for name in names
                ],
            }
            for id_, names in fields.items()
        ],
    }


def line(last: int) -> list[tuple[int, int | None]]:
    return [(id_, id_ - 1 or None) for id_ in range(1, last + 1)]


def snapshots(base: dict[str, Any], other: dict[str, Any], document: dict[str, Any]) -> set[int]:
    return set(needed_since(base, other, document).snapshots)


def test_everything_since_the_base_stays() -> None:
    base = state(3, *line(3))
    assert snapshots(base, base, state(5, *line(5))) == {3, 4, 5}


def test_ages_count_in_format_version_1() -> None:
    base = state(3, *line(3), version=1)
    assert snapshots(base, base, state(5, *line(5), version=1)) == {3, 4, 5}


def test_a_table_that_had_no_snapshot_keeps_all() -> None:
    base = state(-1)
    assert snapshots(base, base, state(3, *line(3))) == {1, 2, 3}


def test_after_a_rollback_the_last_common_snapshot_stays() -> None:
    base = state(3, *line(3))
    document = state(5, *line(3), (4, 1), (5, 4))
    assert snapshots(base, base, document) == {1, 3, 4, 5}


def test_what_is_on_no_branch_stays_if_it_is_not_older() -> None:
    base = state(3, *line(3))
    assert snapshots(base, base, state(4, *line(4), (9, 1))) == {3, 4, 9}


def test_what_the_head_of_the_other_branch_has_stays() -> None:
    # Ours was merged into theirs, and its own snapshots are not on the line there.
    ours = state(4, *line(4))
    theirs = state(12, *line(2), (11, 2), (12, 11))
    assert snapshots(ours, theirs, state(5, *line(5))) == {2, 3, 4, 5}


def test_a_state_without_a_common_snapshot_keeps_nothing_older() -> None:
    base = state(3, *line(3))
    assert snapshots(base, base, state(9, (7, None), (8, 7), (9, 8))) == {7, 8, 9}


def test_schemas_and_specs_of_the_base_and_later_ones_stay() -> None:
    base = state(1, (1, None), schemas={0: ["a"], 1: ["a", "b"]}, specs={0: [], 1: ["a"]})
    document = state(
        1,
        (1, None),
        schemas={0: ["a"], 1: ["a", "b"], 2: ["a", "b", "c"], 3: ["a", "b", "d"]},
        specs={0: [], 1: ["a"], 2: ["b"]},
    )
    assert needed_since(base, base, document) == Needed(
        frozenset({1}), frozenset({1, 2, 3}), frozenset({1, 2})
    )
