"""Messages and properties of commits by catalogs, such as `append to sales.orders: 3 rows`.

They are made of the updates of a commit, as JSON of the Iceberg REST specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.model import ContentKey

COMMIT_PROPERTIES = {"application-type": ("iceberg",)}
"""The properties of each commit, as Iceberg's own catalogs for Nessie write them."""
_MOST_NAMES = 5
_MOST_DIGITS = 19
"""The digits of the largest number of rows."""
_OVERWRITE = "overwrite"
_VERBS = {
    "append": "append to",
    "delete": "delete from",
    "replace": "rewrite files of",
    _OVERWRITE: "overwrite",
}
"""Verbs by the operation of a snapshot."""
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
    "encryption keys": ("add-encryption-key", "remove-encryption-key"),
}
"""The part of a table that several updates change, by their actions."""


def created(key: ContentKey, updates: Sequence[Document] = ()) -> str:
    """Returns the message of a commit that creates a table, perhaps with rows."""
    snapshots = _snapshots(updates)
    return f"create table {key}{f': {_rows(snapshots)}' if snapshots else ''}"


def changed(key: ContentKey, updates: Sequence[Document]) -> str:
    """Returns the message of a commit that changes a table."""
    snapshots, rest = _snapshots(updates), _first(list(dict.fromkeys(_other(updates))))
    if not snapshots:
        return f"change {key}{f': {rest}' if rest else ''}"
    operations = {_summary(snapshot).get("operation") for snapshot in snapshots}
    operation = operations.pop() if len(operations) == 1 else _OVERWRITE
    verb = _VERBS.get(str(operation), _VERBS[_OVERWRITE])
    branches = [update["ref-name"] for update in _of(updates, "set-snapshot-ref")]
    other = next((name for name in branches if name != "main"), None)
    where = f" (branch {other} of the table)" if other else ""
    return f"{verb} {key}{where}: {_rows(snapshots)}{f'; {rest}' if rest else ''}"


def _of(updates: Iterable[Document], action: str) -> Iterator[Document]:
    return (update for update in updates if update["action"] == action)


def _snapshots(updates: Iterable[Document]) -> list[Document]:
    return [update["snapshot"] for update in _of(updates, "add-snapshot")]


def _summary(snapshot: Document) -> dict[str, Any]:
    summary = snapshot.get("summary")
    return summary if isinstance(summary, dict) else {}


def _rows(snapshots: Sequence[Document]) -> str:
    """Returns how many rows the snapshots add and delete."""
    added, deleted = (
        sum(_count(snapshot, name) for snapshot in snapshots)
        for name in ("added-records", "deleted-records")
    )
    if added and deleted:
        return f"{_number(added)} added, {deleted:,} deleted"
    return _number(added or deleted)


def _count(snapshot: Document, name: str) -> int:
    value = str(_summary(snapshot).get(name, 0))
    return int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else 0


def _number(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _other(updates: Sequence[Document]) -> Iterator[str]:
    """Yields the changes that are not rows, each in a few words."""
    actions = {update["action"] for update in updates}
    yield from (part for part, meant in _PARTS.items() if actions.intersection(meant))
    has_snapshots = "add-snapshot" in actions
    for update in updates:
        action = update["action"]
        if action == "set-properties":
            yield f"properties {names(update['updates'])}"
        elif action == "remove-properties":
            yield f"without properties {names(update['removals'])}"
        elif action == "set-snapshot-ref" and not has_snapshots:
            yield f"{update['type']} {update['ref-name']} of the table"
        elif action == "remove-snapshot-ref":
            yield f"without {update['ref-name']} of the table"
        elif action == "remove-snapshots":
            count = len(update["snapshot-ids"])
            yield f"{count:,} snapshot{'' if count == 1 else 's'} expired"
        elif action == "set-location":
            yield "location"
        elif action == "upgrade-format-version":
            yield f"format version {update['format-version']}"


def names(given: Iterable[str]) -> str:
    """Returns names in order, shortened to the first few."""
    return _first(sorted(given))


def _first(texts: Sequence[str]) -> str:
    """Returns the first few texts as a list."""
    more = f" and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more
