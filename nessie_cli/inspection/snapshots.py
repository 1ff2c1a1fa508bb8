"""The snapshots of a table over time, as its metadata file lists them."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import IcebergTable


class Snapshot(NamedTuple):
    """A snapshot: its time, operation, and the numbers of its summary; None if one is absent."""

    id: int
    time: datetime
    operation: str
    rows: int | None
    files: int | None
    bytes: int | None


class Snapshots(NamedTuple):
    """The current snapshot and its ancestors, newest first, and their whole number."""

    rows: Sequence[Snapshot]
    total: int


def snapshots_of(content: IcebergTable, document: Mapping[str, Any], most: int) -> Snapshots:
    """Returns the newest `most` snapshots. Raises `InvalidInput` for a file that is not sound."""
    try:
        by_id = {each["snapshot-id"]: each for each in document.get("snapshots") or ()}
        line: dict[int, Any] = {}
        where = content.snapshot_id
        while where in by_id and where not in line:
            line[where] = by_id[where]
            where = by_id[where].get("parent-snapshot-id")
        return Snapshots([_snapshot(each) for each in list(line.values())[:most]], len(line))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, OSError):
        raise InvalidInput("the snapshots in the metadata file are not valid") from None


def _snapshot(snapshot: Mapping[str, Any]) -> Snapshot:
    summary = snapshot.get("summary") or {}
    return Snapshot(
        int(snapshot["snapshot-id"]),
        datetime.fromtimestamp(snapshot["timestamp-ms"] / 1000, UTC),
        str(summary.get("operation", "")),
        _number(summary, "total-records"),
        _number(summary, "total-data-files"),
        _number(summary, "total-files-size"),
    )


def _number(summary: Mapping[str, Any], name: str) -> int | None:
    return int(summary[name]) if name in summary else None
