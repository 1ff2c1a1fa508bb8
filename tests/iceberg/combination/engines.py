"""Random sides of a table, and what an engine makes of them, without new names and ids."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from nessie_cli.iceberg.combination.combination import combine
from nessie_cli.iceberg.combination.engines import Engine
from nessie_cli.iceberg.combination.manifests import Entry, Manifest, read_list, read_manifest
from nessie_cli.iceberg.combination.states import Row
from nessie_cli.iceberg.combination.writing import write_table
from tests.iceberg.combination.test_combination import (
    NOW,
    Change,
    Lake,
    append,
    compact,
    delete,
    path_of,
)


class Sides(NamedTuple):
    """The metadata files of a base and of two sides."""

    base: str
    ours: str
    theirs: str


class Result(NamedTuple):
    """The reasons of conflicts; or the rows of the manifest list, and the entries of manifests."""

    reasons: list[str]
    listed: list[Row]
    entries: list[list[tuple[Any, ...]]]


def random_sides(lake: Lake, rng: random.Random) -> Sides:
    """Returns sides that combine, or do not. At least one may delete and compact."""
    numbers = iter(range(10, 1000))

    def changes(*, rewrites: bool) -> list[Change]:
        choices: list[Change] = [append(next(numbers), next(numbers)), append(next(numbers))]
        if rewrites:
            choices += [delete(rng.choice([1, 2, 3])), compact]
        return rng.sample(choices, rng.randint(1, len(choices)))

    base = lake.branch("start", *(append(next(numbers)) for _ in range(4)))
    rewriting = rng.choice([{"ours"}, {"theirs"}, {"ours", "theirs"}])
    sides = [
        lake.branch(name, *changes(rewrites=name in rewriting), start=base)
        for name in ("ours", "theirs")
    ]
    if rng.random() < 0.5:
        for location in (base, *sides):
            _identify(path_of(location))
    return Sides(base, *sides)


def _identify(path: Path) -> None:
    """Makes `id` the identifier: then the decision depends on its bounds."""
    document = json.loads(path.read_bytes())
    for schema in document["schemas"]:
        schema["identifier-field-ids"] = [1]
        schema["fields"][0]["required"] = True
    path.write_text(json.dumps(document))


def result_of(lake: Lake, sides: Sides, engine: Engine | None = None) -> Result:
    """Combines, and reads all manifests of the result."""
    documents = [lake._document(location) for location in sides]
    combination = combine(*documents, read=lake.read, engine=engine)
    reasons = [getattr(each, "reason", str(each)) for each in combination.conflicts]
    if reasons or combination.files.is_empty:
        return Result(reasons, [], [])
    made = write_table(combination, lake.write, location=sides.ours, now=NOW, summary={})
    snapshot = made.document["snapshots"][-1]
    manifests = manifests_of(snapshot["manifest-list"])
    new = snapshot["snapshot-id"]
    return Result(
        [*combination.notes, *(file.path for file in combination.same_keys)],
        [_comparable(each.listed, new) for each in manifests],
        [[_values(entry, new) for entry in each.entries] for each in manifests],
    )


def manifests_of(location: str) -> list[Manifest]:
    """Returns all manifests of a manifest list."""
    listed = read_list(path_of(location).read_bytes(), location).rows
    return [read_manifest(path_of(path).read_bytes(), row) for path, row in listed.items()]


def _comparable(listed: Row, new: int) -> Row:
    if listed["added_snapshot_id"] != new:
        return listed
    # The random id of the snapshot is compressed, too.
    return {**listed, "manifest_path": "", "manifest_length": 0, "added_snapshot_id": 0}


def _values(entry: Entry, new: int) -> tuple[Any, ...]:
    file = entry.file
    snapshot = 0 if file.snapshot_id == new else file.snapshot_id
    numbers = file.sequence, file.file_sequence, file.first_row_id
    return entry.status, file.identity, snapshot, numbers, file.row
