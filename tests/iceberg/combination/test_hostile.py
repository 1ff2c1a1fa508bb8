"""Tables that other programs made to keep a server busy are refused."""

from __future__ import annotations

from typing import Any

from nessie_cli.iceberg.combination.reading import line_of


def snapshot(id_: int, parent: int) -> dict[str, Any]:
    return {"snapshot-id": id_, "parent-snapshot-id": parent}


def test_snapshots_that_are_their_own_ancestors_are_listed_once() -> None:
    """A client can commit them; a merge would take all memory."""
    snapshots = [snapshot(1, 2), snapshot(2, 3), snapshot(3, 1), snapshot(4, 4)]
    for current, line in ((1, [1, 2, 3]), (4, [4]), (5, [])):
        document = {"current-snapshot-id": current, "snapshots": snapshots}
        assert line_of(document) == line
