"""What a commit of the catalog says in `nessie log`: `append to sales.orders: 3 rows`, from the updates that PyIceberg commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from nessie_cli.model import ContentKey

_MOST_NAMES = 5
_VERBS = {
    Operation.APPEND: "append to",
    Operation.DELETE: "delete from",
    Operation.REPLACE: "rewrite files of",
    Operation.OVERWRITE: "overwrite",
}
_PARTS = {
    "schema": ("add-schema", "set-current-schema", "remove-schemas"),
    "partitions": ("add-spec", "set-default-spec", "remove-partition-specs"),
    "sort order": ("add-sort-order", "set-default-sort-order"),
    "statistics": (
        "set-statistics",
        "remove-statistics",
        "set-partition-statistics",
        "remove-partition-statistics",
    ),
}
"""What several updates are about, by their actions."""


def created(key: ContentKey, updates: Sequence[TableUpdate] = ()) -> str:
    """The message of a commit that creates a table, maybe with rows."""
    snapshots = _snapshots(updates)
    return f"create table {key}{f': {_rows(snapshots)}' if snapshots else ''}"


def changed(key: ContentKey, updates: Sequence[TableUpdate]) -> str:
    """The message of a commit that changes a table."""
    snapshots, rest = _snapshots(updates), ", ".join(_other(updates))
    if not snapshots:
        return f"change {key}{f': {rest}' if rest else ''}"
    operations = {_operation(snapshot) for snapshot in snapshots}
    verb = _VERBS[operations.pop() if len(operations) == 1 else Operation.OVERWRITE]
    branches = [
        update.ref_name
        for update in updates
        if isinstance(update, SetSnapshotRefUpdate) and update.ref_name != MAIN_BRANCH
    ]
    where = f" (branch {branches[0]} of the table)" if branches else ""
    return f"{verb} {key}{where}: {_rows(snapshots)}{f'; {rest}' if rest else ''}"


def _snapshots(updates: Iterable[TableUpdate]) -> list[Snapshot]:
    return [update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate)]


def _operation(snapshot: Snapshot) -> Operation:
    return snapshot.summary.operation if snapshot.summary else Operation.OVERWRITE


def _rows(snapshots: Sequence[Snapshot]) -> str:
    """The rows of these snapshots: added, deleted, or both."""
    added, deleted = (
        sum(_count(snapshot, name) for snapshot in snapshots)
        for name in ("added-records", "deleted-records")
    )
    if added and deleted:
        return f"{_number(added)} added, {deleted:,} deleted"
    return _number(added or deleted)


def _count(snapshot: Snapshot, name: str) -> int:
    return int((snapshot.summary and snapshot.summary[name]) or 0)


def _number(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _other(updates: Sequence[TableUpdate]) -> Iterator[str]:
    """What changes besides the rows, in a few words each."""
    actions = {update.action for update in updates}
    yield from (what for what, meant in _PARTS.items() if actions.intersection(meant))
    has_snapshots = bool(_snapshots(updates))
    for update in updates:
        if isinstance(update, SetPropertiesUpdate):
            yield f"properties {names(update.updates)}"
        elif isinstance(update, RemovePropertiesUpdate):
            yield f"without properties {names(update.removals)}"
        elif isinstance(update, SetSnapshotRefUpdate) and not has_snapshots:
            yield f"{update.type.value} {update.ref_name} of the table"
        elif isinstance(update, RemoveSnapshotRefUpdate):
            yield f"without {update.ref_name} of the table"
        elif isinstance(update, RemoveSnapshotsUpdate):
            yield f"{len(update.snapshot_ids):,} snapshot{'' if len(update.snapshot_ids) == 1 else 's'} expired"
        elif isinstance(update, SetLocationUpdate):
            yield "location"
        elif isinstance(update, UpgradeFormatVersionUpdate):
            yield f"format version {update.format_version}"


def names(given: Iterable[str]) -> str:
    """Names for a message, in order; the first few of many."""
    found = sorted(given)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more
