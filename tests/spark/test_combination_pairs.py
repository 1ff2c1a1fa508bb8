"""Pairs of operations: what Iceberg refuses as concurrent commits, we refuse too.

A run tries some operations of each format version, with NESSIE_TEST_COMBINATIONS_SPARK all of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest

from nessie_cli.iceberg.combination.combination import Combination
from tests.spark.concurrency import refusal
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.operations import OPERATIONS, Operation, base_table
from tests.spark.sides import Sides, columns_of, expected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
ALL = "NESSIE_TEST_COMBINATIONS_SPARK" in os.environ
SEED = os.environ.get("NESSIE_TEST_SEED") or str(random.randrange(2**32))
OPERATIONS_OF_A_RUN = 4


class Pair(NamedTuple):
    """The result of an operation of ours and one of theirs."""

    ours: Operation
    theirs: Operation
    conflicts: list[str]
    refusal: str
    """Iceberg's."""

    def __str__(self) -> str:
        mine = "; ".join(self.conflicts) or "combined"
        return f"{self.ours.name} | {self.theirs.name} | {mine} | {self.refusal or 'accepted'}"


def is_finer(pair: Pair) -> bool:
    """Returns whether we combine what Iceberg refuses for a reason that is not about rows."""
    ours, theirs = pair.ours, pair.theirs
    if "conflicting delete files that can apply to records matching" in pair.refusal:
        # An update compares partitions there, and a combination the files with deleted rows. The
        # rows are not the same.
        return ours.kind in ("delete rows", "update rows") and theirs.kind == "update rows"
    if "concurrently added DV" in pair.refusal:
        # Both sides deleted rows of one file, and a combination unites their vectors.
        kinds = {ours.kind, theirs.kind}
        return kinds <= {"delete rows", "update rows", "rewrite"} and kinds != {"rewrite"}
    if ours.kind == theirs.kind == "definition":
        # Iceberg's clients require the schema that they saw. A combination compares the columns.
        columns = "current schema changed", "last assigned field id changed"
        # Both sides changed the definitions in the same way.
        return ours.name == theirs.name or any(each in pair.refusal for each in columns)
    if "Missing required files to delete" in pair.refusal and theirs.name == "rewrite deletes":
        # Ours replaced these delete files, too, or dropped their data files. A combination unites
        # the positions of both sides, and a position in two files deletes one row.
        return ours.kind in ("delete rows", "drop") or ours.name == theirs.name
    return False


@pytest.fixture(scope="module")
def sides(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    return Sides(spark, tmp_path_factory.mktemp("pairs"))


def conflicts_of(combination: Combination) -> list[str]:
    return sorted({getattr(each, "reason", str(each)) for each in combination.conflicts})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_iceberg_refuses_is_refused(sides: Sides, version: int) -> None:
    possible = [operation for operation in OPERATIONS if operation.since <= version]
    rng = random.Random(f"{SEED}:{version}")
    operations = possible if ALL else rng.sample(possible, OPERATIONS_OF_A_RUN)
    base = base_table(sides, version).location
    made: dict[tuple[str, str], str] = {}
    for operation, side in product(operations, "ot"):
        table = sides.register(base)
        operation.change(table, side)
        made[operation.name, side] = table.location
    results: dict[tuple[str, str], str] = {}
    pairs = []
    for first, second in product(operations, operations):
        ours, theirs = made[first.name, "o"], made[second.name, "t"]
        combination = sides.combine(base, ours, theirs)
        conflicts = conflicts_of(combination)
        if not conflicts:
            results[first.name, second.name] = sides.written(combination, ours)
        pairs.append(Pair(first, second, conflicts, refusal(sides, second, base, ours, theirs)))
    report = "\n".join([f"NESSIE_TEST_SEED={SEED}", *map(str, pairs)])
    print(report)
    if ALL:
        # A combination that always refuses would pass every other check.
        both = [pair for pair in pairs if not pair.refusal]
        assert sum(not pair.conflicts for pair in both) > 0.75 * len(both), report
    wrong = [pair for pair in pairs if pair.refusal and not pair.conflicts and not is_finer(pair)]
    assert not wrong, report
    sides.rows(*made.values(), *results.values())
    for (first_name, second_name), result in results.items():
        locations = base, made[first_name, "o"], made[second_name, "t"], result
        *before, after = sides.rows(*locations)
        expected = expected_rows(*before, columns_of(result).values())
        assert after == expected, (first_name, second_name, report)
