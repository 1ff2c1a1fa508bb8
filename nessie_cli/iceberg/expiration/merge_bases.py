"""What later merges need of a table: everything that is not older than their merge base.

A merge combines the files of both sides by their snapshots since the merge base, and the columns by
the schemas since then (`nessie_cli.iceberg.combination`). It finds the changes of a side by walking
back to a snapshot that the merge base also has. A merge writes its snapshot on top of ours, so the
next merge base can be the present head of the other branch: what both have stays, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct

from nessie_cli.iceberg.builder import partitions, schemas
from nessie_cli.iceberg.builder.values import Document, by_id, current_schema
from nessie_cli.iceberg.expiration.retention import line_of


class Needed(Struct, frozen=True):
    """The ids of snapshots, schemas and partition specs that a merge needs."""

    snapshots: frozenset[int]
    schemas: frozenset[int]
    specs: frozenset[int]


def needed_since(base: Document, other: Document, document: Document) -> Needed:
    """Returns what merges with another branch need of metadata.

    `base` is the metadata of the table at the merge base, and `other` that at the head of the other
    branch. All are normalized, and in the state that their contents name.
    """
    return Needed(
        frozenset(
            _not_older(base, document) | _down_to(base, document) | _down_to(other, document)
        ),
        frozenset(_new(base, document, "schemas", "schema-id", schemas.form))
        | _equal_to_current(base, document),
        frozenset(_new(base, document, "partition-specs", "spec-id", partitions.spec_form))
        | {base["default-spec-id"]},
    )


def _not_older(base: Document, document: Document) -> set[int]:
    """Returns the snapshots that are not older than the current one of the base."""
    current = by_id(base["snapshots"], "snapshot-id").get(base["current-snapshot-id"])
    if current is None:
        return {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    return {
        snapshot["snapshot-id"]
        for snapshot in document["snapshots"]
        if _age(snapshot) >= _age(current)
    }


def _down_to(other: Document, document: Document) -> set[int]:
    """Returns the line of the current snapshot, down to the first one that another state has."""
    there = set(line_of(other))
    needed = set()
    for id_ in line_of(document):
        needed.add(id_)
        if id_ in there:
            return needed
    return set()


def _age(snapshot: Document) -> tuple[int, int]:
    """Returns a key that sorts older snapshots first. Format version 1 has no numbers."""
    number = snapshot.get("sequence-number") or 0
    return number, 0 if number else snapshot["timestamp-ms"]


def _new(
    base: Document,
    document: Document,
    member: str,
    id_member: str,
    form: Callable[[Document], Any],
) -> Collection[int]:
    """Returns the definitions that the table did not have at the base."""
    before = [form(each) for each in base[member]]
    return {each[id_member] for each in document[member] if form(each) not in before}


def _equal_to_current(base: Document, document: Document) -> frozenset[int]:
    """Returns the schemas that are equal to the current one of the base."""
    current = schemas.form(current_schema(base))
    return frozenset(
        each["schema-id"] for each in document["schemas"] if schemas.form(each) == current
    )
