"""Random updates of table metadata, applied by Iceberg's own builder and by ours.

`make test-original` runs it. The updates avoid two bugs of Iceberg 1.11: it cannot remove unknown
snapshots if there are none, and it finds schemas that were removed before.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.builder import table
from tests.interop.machine import Machine, machine

__all__ = ["machine"]

SEQUENCES = 300
STEPS = 10
Document = dict[str, Any]
TYPES = (
    "int",
    "long",
    "string",
    "boolean",
    "double",
    "date",
    "timestamp",
    "timestamptz",
    "uuid",
    "binary",
    "decimal(9,2)",
    "fixed[4]",
    "time",
)
NEW_TYPES = ("timestamp_ns", "variant", "unknown", "geometry", "geography")
TRANSFORMS = ("identity", "bucket[4]", "truncate[3]", "year", "month", "day", "hour", "void")


class Updates:
    """Makes random updates, most of which can be applied to some metadata."""

    def __init__(self, seed: int, now: int) -> None:
        self._random = random.Random(seed)
        self._numbers = itertools.count(10)
        self._now = now - 2000

    def first(self) -> list[Document]:
        """Returns the updates that create a table."""
        version = self._random.choice([1, 2, 2, 3])
        actions: list[tuple[str, Document]] = [
            ("assign-uuid", {"uuid": "00000000-0000-0000-0000-000000000000"}),
            ("upgrade-format-version", {"format-version": version}),
            ("add-schema", {"schema": self._schema(None)}),
            ("set-current-schema", {"schema-id": -1}),
            ("add-spec", {"spec": {"spec-id": 0, "fields": []}}),
            ("set-default-spec", {"spec-id": -1}),
            ("add-sort-order", {"sort-order": {"order-id": 0, "fields": []}}),
            ("set-default-sort-order", {"sort-order-id": -1}),
            ("set-location", {"location": "s3://b/t"}),
        ]
        return [{"action": action, **members} for action, members in actions]

    def some(self, metadata: Document) -> list[Document]:
        """Returns one to three updates of metadata."""
        makers = (
            self._of_schema, self._of_spec, self._of_order, self._of_snapshot, self._of_snapshot,
            self._of_ref, self._of_statistics, self._of_others,
        )  # fmt: skip
        return [
            one
            for _ in range(self._random.choice([1, 1, 2, 3]))
            for one in self._random.choice(makers)(metadata)
        ]

    def _field(self, ids: Iterator[int], depth: int = 0) -> Document:
        id_ = next(ids)
        kind = self._random.choice(NEW_TYPES if self._random.random() < 0.05 else TYPES)
        field: Document = {
            "id": id_,
            "name": f"c{id_}",
            "required": kind not in NEW_TYPES and self._random.random() < 0.4,
            "type": kind,
        }
        if depth == 0 and self._random.random() < 0.2:
            inner = self._field(ids, 1)
            whole: Document = {
                "type": "list",
                "element-id": next(ids),
                "element": "string",
                "element-required": True,
            }
            field["type"] = self._random.choice([{"type": "struct", "fields": [inner]}, whole])
        if field["type"] == "int" and self._random.random() < 0.2:
            field |= {"initial-default": 5, "write-default": 6}
        return field

    def _schema(self, base: Document | None) -> Document:
        if base is None:
            ids = itertools.count(1)
            return {
                "type": "struct",
                "fields": [self._field(ids) for _ in range(self._random.randint(1, 5))],
            }
        made: Document = json.loads(
            json.dumps({name: value for name, value in base.items() if name != "schema-id"})
        )
        if self._random.random() < 0.6:
            made["fields"].append(
                self._field(itertools.count(max(table.schemas.fields(base), default=0) + 1))
            )
        elif len(made["fields"]) > 1:
            made["fields"].pop()
        return made

    def _of_schema(self, metadata: Document) -> list[Document]:
        current = next(
            one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"]
        )
        added: Document = {"action": "add-schema", "schema": self._schema(current)}
        return (
            [added, {"action": "set-current-schema", "schema-id": -1}]
            if self._random.random() < 0.7
            else [added]
        )

    def _of_spec(self, metadata: Document) -> list[Document]:
        fields = [
            {
                "source-id": self._random.randint(1, metadata["last-column-id"]),
                "transform": self._random.choice(TRANSFORMS),
                "name": self._random.choice(
                    [f"p{self._random.randint(1, 9)}", f"c{self._random.randint(1, 4)}"]
                ),
                "field-id": 1000 + number,
            }
            for number in range(self._random.randint(0, 2))
        ]
        added: Document = {"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}}
        return (
            [added, {"action": "set-default-spec", "spec-id": -1}]
            if self._random.random() < 0.7
            else [added]
        )

    def _of_order(self, metadata: Document) -> list[Document]:
        fields = [
            {
                "source-id": self._random.randint(1, metadata["last-column-id"]),
                "transform": self._random.choice(TRANSFORMS),
                "direction": self._random.choice(["asc", "desc"]),
                "null-order": self._random.choice(["nulls-first", "nulls-last"]),
            }
            for _ in range(self._random.randint(0, 2))
        ]
        added: Document = {
            "action": "add-sort-order",
            "sort-order": {"order-id": 1 if fields else 0, "fields": fields},
        }
        return (
            [added, {"action": "set-default-sort-order", "sort-order-id": -1}]
            if self._random.random() < 0.7
            else [added]
        )

    def _of_snapshot(self, metadata: Document) -> list[Document]:
        id_ = next(self._numbers)
        stale = self._random.random() < 0.1
        snapshot: Document = {
            "snapshot-id": id_,
            "timestamp-ms": self._now + id_,
            "manifest-list": f"s3://b/{id_}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        if metadata["format-version"] > 1:
            snapshot["sequence-number"] = (
                1 if stale else metadata.get("last-sequence-number", 0) + 1
            )
        if metadata["snapshots"]:
            snapshot["parent-snapshot-id"] = metadata["snapshots"][-1]["snapshot-id"]
        if metadata["format-version"] > 2:
            snapshot |= {
                "first-row-id": 0 if stale else metadata["next-row-id"],
                "added-rows": self._random.randint(0, 9),
            }
        added: Document = {"action": "add-snapshot", "snapshot": snapshot}
        name = self._random.choice(["main", "main", "b"])
        return [
            added,
            {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": id_},
        ]

    def _of_ref(self, metadata: Document) -> list[Document]:
        if not metadata["snapshots"]:
            return []
        id_ = self._random.choice(metadata["snapshots"])["snapshot-id"]
        name, kind = self._random.choice([("main", "branch"), ("b", "branch"), ("t", "tag")])
        made: list[Document] = [
            {
                "action": "set-snapshot-ref",
                "ref-name": name,
                "type": kind,
                "snapshot-id": id_,
                "max-ref-age-ms": 5,
            },
            {"action": "remove-snapshot-ref", "ref-name": name},
            {"action": "remove-snapshots", "snapshot-ids": [id_]},
        ]
        return [self._random.choice(made)]

    def _of_statistics(self, metadata: Document) -> list[Document]:
        id_ = self._random.choice([one["snapshot-id"] for one in metadata["snapshots"]] or [99])
        file = {"snapshot-id": id_, "statistics-path": "s3://b/stats", "file-size-in-bytes": 7}
        made: list[Document] = [
            {
                "action": "set-statistics",
                "snapshot-id": id_,
                "statistics": file | {"file-footer-size-in-bytes": 2, "blob-metadata": []},
            },
            {"action": "remove-statistics", "snapshot-id": id_},
            {"action": "set-partition-statistics", "partition-statistics": file},
            {"action": "remove-partition-statistics", "snapshot-id": id_},
        ]
        return [self._random.choice(made)]

    def _of_others(self, metadata: Document) -> list[Document]:
        key = {
            "key-id": self._random.choice("ab"),
            "encrypted-key-metadata": "aGk=",
            "encrypted-by-id": "k",
        }
        made: list[Document] = [
            {
                "action": "assign-uuid",
                "uuid": f"00000000-0000-0000-0000-{self._random.randint(0, 3):012d}",
            },
            {"action": "upgrade-format-version", "format-version": self._random.choice([1, 2, 3])},
            {"action": "set-location", "location": self._random.choice(["s3://b/t", "s3://b/u"])},
            {
                "action": "set-properties",
                "updates": {"x": "1", "write.metadata.previous-versions-max": "2"},
            },
            {"action": "remove-properties", "removals": ["x"]},
            {"action": "add-encryption-key", "encryption-key": key},
            {"action": "remove-encryption-key", "key-id": key["key-id"]},
            {"action": "set-default-spec", "spec-id": metadata["partition-specs"][0]["spec-id"]},
        ]
        return [self._random.choice(made)]


class Oracle:
    """Iceberg's own builder, in its own process."""

    def __init__(self, machine: Machine) -> None:
        self._process = subprocess.Popen(
            machine.command("MetadataBuilder"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def answer(self, request: Document) -> Document:
        """Returns the new metadata, or the error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        found: Document = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture
def oracle(machine: Machine) -> Iterator[Oracle]:
    found = Oracle(machine)
    yield found
    found.close()


def comparable(metadata: Document, begun: int) -> Document:
    """Returns metadata without current times, with statistics in one order."""
    made: Document = json.loads(json.dumps(metadata))
    made["last-updated-ms"] = 0
    for log in ("snapshot-log", "metadata-log"):
        for entry in made[log]:
            entry["timestamp-ms"] = min(entry["timestamp-ms"], begun)
    for member in ("statistics", "partition-statistics"):
        made[member] = sorted(made[member], key=lambda one: one["snapshot-id"])
    return made


def changed(
    metadata: Document | None, updates: list[Document], location: str
) -> tuple[Document | None, str]:
    """Returns our builder's metadata, or the reason of its refusal."""
    try:
        return table.updated(metadata, updates, int(time.time() * 1000), location), ""
    except NessieError as error:
        return None, error.message


def test_updates_have_the_same_result_as_in_iceberg(oracle: Oracle) -> None:
    applied = refused = 0
    for seed in range(SEQUENCES):
        begun = int(time.time() * 1000)
        made = Updates(seed, begun)
        metadata: Document | None = None
        location = "s3://b/t/0.metadata.json"
        for step in range(STEPS):
            updates = made.first() if metadata is None else made.some(metadata)
            version = next(
                (
                    one["format-version"]
                    for one in updates
                    if one["action"] == "upgrade-format-version"
                ),
                2,
            )
            theirs = oracle.answer(
                {"base": metadata, "version": version, "location": location, "updates": updates}
            )
            ours, why = changed(metadata, updates, location)
            assert (ours is None) == ("error" in theirs), (seed, step, why, theirs, updates)
            if ours is None:
                refused += 1
            else:
                assert comparable(ours, begun) == comparable(theirs["metadata"], begun), (
                    seed,
                    step,
                    updates,
                )
                metadata, applied = ours, applied + 1
                location = f"s3://b/t/{step}.metadata.json"
            if metadata is None:
                break
    assert applied > SEQUENCES
    assert refused > SEQUENCES // 10
