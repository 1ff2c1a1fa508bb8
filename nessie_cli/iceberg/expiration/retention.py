"""Which snapshots of a table Iceberg's own rules keep. Reads nothing.

The rules are those of `RemoveSnapshots` in Iceberg's Java library (version 1.11), without its check
of `gc.enabled`, which is about deleting files.

https://iceberg.apache.org/spec/#snapshot-retention-policy
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import MAIN
from nessie_cli.iceberg.builder.values import Document, by_id

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
_FIVE_DAYS = 5 * 24 * 3600 * 1000
_FOR_EVER = 2**63 - 1


class ExpiryRule(Struct, frozen=True):
    """What a caller asks for. None stands for properties of the table, or Iceberg's defaults.

    Snapshots before `older_than` (milliseconds since 1970) expire, but not the newest `keep_last`
    of each branch inside the table. A branch with settings of its own follows these.
    """

    older_than: int | None = None
    keep_last: int | None = None


class Retained(Struct, frozen=True):
    """The snapshots that stay, and the names of branches and tags inside the table that go."""

    snapshots: frozenset[int]
    removed_refs: tuple[str, ...]


def retained(document: Document, rule: ExpiryRule, now: int) -> Retained:
    """Applies the rules to normalized metadata. `now` is in milliseconds since 1970.

    Raises `InvalidInput` if a property of the table is not an integer.
    """
    properties = document["properties"]
    older_than = rule.older_than
    if older_than is None:
        older_than = now - _number(properties, MAX_SNAPSHOT_AGE, _FIVE_DAYS)
    least = rule.keep_last
    if least is None:
        least = _number(properties, MIN_SNAPSHOTS, 1)
    snapshots = by_id(document["snapshots"], "snapshot-id")
    refs = _live_refs(document, snapshots, now)
    keep = {ref["snapshot-id"] for ref in refs.values()} & snapshots.keys()
    on_refs: set[int] = set()
    for ref in refs.values():
        if ref.get("type") == "tag":
            on_refs.add(ref["snapshot-id"])
            continue
        line = list(ancestors(snapshots, ref["snapshot-id"]))
        on_refs.update(line)
        age, number = ref.get("max-snapshot-age-ms"), ref.get("min-snapshots-to-keep")
        keep.update(
            _newest(
                snapshots,
                line,
                older_than if age is None else now - age,
                least if number is None else number,
            )
        )
    keep.update(
        id_
        for id_, snapshot in snapshots.items()
        if id_ not in on_refs and snapshot["timestamp-ms"] >= older_than
    )
    # Metadata without a branch main can still have a current snapshot.
    keep |= {document["current-snapshot-id"]} & snapshots.keys()
    removed = tuple(name for name in document["refs"] if name not in refs)
    return Retained(frozenset(keep), removed)


def ancestors(snapshots: Mapping[int, Document], id_: int | None) -> Iterator[int]:
    """Yields a snapshot and its ancestors, newest first, as far as they are listed."""
    seen: set[int] = set()
    while id_ in snapshots and id_ not in seen:
        assert id_ is not None
        seen.add(id_)
        yield id_
        id_ = snapshots[id_].get("parent-snapshot-id")


def line_of(document: Document) -> list[int]:
    """Returns the current snapshot and its ancestors, newest first, as far as they are listed."""
    snapshots = by_id(document["snapshots"], "snapshot-id")
    return list(ancestors(snapshots, document["current-snapshot-id"]))


def _live_refs(
    document: Document, snapshots: Mapping[int, Document], now: int
) -> dict[str, Document]:
    """Returns the branches and tags that stay. The branch main always does."""
    longest = _number(document["properties"], MAX_REF_AGE, _FOR_EVER)
    live = {}
    for name, ref in document["refs"].items():
        snapshot = snapshots.get(ref["snapshot-id"])
        age = ref.get("max-ref-age-ms")
        limit = longest if age is None else age
        if name == MAIN or (snapshot is not None and now - snapshot["timestamp-ms"] <= limit):
            live[name] = ref
    return live


def _newest(
    snapshots: Mapping[int, Document], line: list[int], older_than: int, least: int
) -> Iterator[int]:
    """Yields the snapshots of a branch up to the first one that is too old and one too many."""
    for number, id_ in enumerate(line):
        if number >= least and snapshots[id_]["timestamp-ms"] < older_than:
            return
        yield id_


def _number(properties: Mapping[str, Any], name: str, default: int) -> int:
    given = properties.get(name)
    if given is None:
        return default
    try:
        return int(given)
    except (TypeError, ValueError):
        raise InvalidInput(f"property {name}: must be an integer, not {given!r}") from None
