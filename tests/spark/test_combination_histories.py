"""Random histories of two sides of a table by Spark and Java: refused, or the rows of both.

`NESSIE_TEST_COMBINATIONS_SPARK=500` runs that many histories, NESSIE_TEST_SEED those of a seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.iceberg.combination.duck import can_read, duckdb_rows
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.results import check_result
from tests.spark.sides import TOKEN, Sides, Table, columns_of, document, expected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
COUNT = int(os.environ.get("NESSIE_TEST_COMBINATIONS_SPARK", "3"))
SEED = os.environ.get("NESSIE_TEST_SEED") or str(random.randrange(2**32))
IDS, PARTITIONS = 6, 3
"""Ids that a base has in each partition, and its partitions."""


class History:
    """Random changes of one table. Tokens of its rows begin with its name."""

    def __init__(self, table: Table, name: str, rng: random.Random, version: int) -> None:
        self.table, self.name, self.rng, self.version = table, name, rng, version
        self.operations: list[str] = []
        self._number = 0
        self._own: list[tuple[int, int]] = []
        """Rows that were added: ids and partitions."""

    def run(self, count: int, *, definitions: bool) -> None:
        operations = [
            *(
                "append",
                "append",
                "append",
                "delete rows",
                "update rows",
                "drop",
                "overwrite",
                "compact",
            ),
            "rewrite manifests",
        ]
        if self.version > 1:
            operations += ["delete rows", "update rows", "delete equal", "upsert"]
            operations += ["rewrite deletes", "delete in many files"]
        if definitions:
            operations += ["add column", "rename column", "drop column", "property", "partitions"]
            operations += ["promote", "drop partitions", "order", "expire", "roll back"]
        for _ in range(count):
            operation = self.rng.choice(operations)
            self.operations.append(operation)
            getattr(self, f"_{operation.replace(' ', '_')}")()

    def _row(self) -> tuple[int, int]:
        """Returns an id and its partition."""
        partition = self.rng.randrange(PARTITIONS)
        if self._own and self.rng.random() < 0.3:
            return self.rng.choice(self._own)
        return partition * 10 + self.rng.randrange(IDS), partition

    def _token(self) -> str:
        self._number += 1
        return f"{self.name}{self._number}"

    def append(self, *ids: int, partition: int) -> None:
        rows = ", ".join(f"({id_}, {partition}, '{self._token()}-{id_}')" for id_ in ids)
        self.table.sql(f"INSERT INTO {{}} (id, p, token) VALUES {rows}")

    def _new_ids(self) -> list[int]:
        offset = 100 if self.name == "o" else 200
        self._number += 10
        return [offset * 1000 + self._number + n for n in range(self.rng.randint(1, 3))]

    def _append(self) -> None:
        ids, partition = self._new_ids(), self.rng.randrange(PARTITIONS + 1)
        self.append(*ids, partition=partition)
        self._own += [(id_, partition) for id_ in ids]

    def _overwrite(self) -> None:
        partition = self.rng.randrange(PARTITIONS)
        (id_, *_) = self._new_ids()
        self.table.sql(
            f"INSERT OVERWRITE {{}} (id, p, token) VALUES ({id_}, {partition}, '{self._token()}')"
        )

    def _drop(self) -> None:
        self.table.sql(f"DELETE FROM {{}} WHERE p = {self.rng.randrange(PARTITIONS)}")

    def _delete_rows(self) -> None:
        id_, partition = self._row()
        self._in_some_mode(f"DELETE FROM {{}} WHERE p = {partition} AND id = {id_}")

    def _update_rows(self) -> None:
        id_, partition = self._row()
        self._in_some_mode(
            f"UPDATE {{}} SET token = concat(token, '-{self._token()}')"
            f" WHERE p = {partition} AND id = {id_}"
        )

    def _in_some_mode(self, statement: str) -> None:
        mode = self.rng.choice(["copy-on-write", "merge-on-read"][: self.version])
        self.operations[-1] += f", {mode}"
        self.table.with_properties(
            lambda: self.table.sql(statement), write_delete_mode=mode, write_update_mode=mode
        )

    def _delete_in_many_files(self) -> None:
        ids = ", ".join(str(self._row()[0]) for _ in range(3))
        self.table.with_properties(
            lambda: self.table.sql(f"DELETE FROM {{}} WHERE id IN ({ids})"),
            write_delete_granularity=self.rng.choice(["partition", "file"]),
        )

    def _delete_equal(self) -> None:
        self.table.delete_equal(*self._row())

    def _upsert(self) -> None:
        self.table.delete_equal(*self._row(), self._token())

    def _compact(self) -> None:
        starting = self.rng.choice(["true", "false"])
        where = self.rng.choice(["", f"where => 'p = {self.rng.randrange(PARTITIONS)}', "])
        self._call(
            f"rewrite_data_files({{}}, {where}options => map('rewrite-all', 'true',"
            f" 'use-starting-sequence-number', '{starting}'))"
        )

    def _rewrite_deletes(self) -> None:
        self._call("rewrite_position_delete_files({}, options => map('rewrite-all', 'true'))")

    def _rewrite_manifests(self) -> None:
        self._call("rewrite_manifests({})")

    def _expire(self) -> None:
        # The files stay: the other side has some of them.
        expiry = self.table.java.expireSnapshots().cleanExpiredFiles(False)
        expiry.expireOlderThan(4_000_000_000_000).retainLast(1).commit()

    def _roll_back(self) -> None:
        snapshot = self.table.java.currentSnapshot()
        parent = snapshot and snapshot.parentId()
        if parent is not None and self.table.java.snapshot(parent):
            self._call(f"rollback_to_snapshot({{}}, {parent})")

    def _call(self, call: str) -> None:
        name = f"'db.{self.table.name}'"
        self.table.sides.sql(f"CALL lake.system.{call.format(name)}")

    # -- definitions -----------------------------------------------------------------------------

    def _has(self, column: str) -> bool:
        return self.table.java.schema().findField(column) is not None

    def _add_column(self) -> None:
        self.table.sql(f"ALTER TABLE {{}} ADD COLUMN {self._token()} string")

    def _rename_column(self) -> None:
        if self._has("v"):
            self.table.sql(f"ALTER TABLE {{}} RENAME COLUMN v TO {self._token()}")

    def _drop_column(self) -> None:
        if self._has("v"):
            self.table.sql("ALTER TABLE {} DROP COLUMN v")

    def _property(self) -> None:
        self.table.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('{self.name}' = '{self._token()}')")

    def _partitions(self) -> None:
        if "id_bucket_2" not in [field.name() for field in self.table.java.spec().fields()]:
            self.table.sql("ALTER TABLE {} ADD PARTITION FIELD bucket(2, id)")

    def _drop_partitions(self) -> None:
        fields = self.table.java.spec().fields()
        # Format version 1 keeps a removed field, with the transform "void".
        if "p" in [field.name() for field in fields if not field.transform().isVoid()]:
            self.table.sql("ALTER TABLE {} DROP PARTITION FIELD p")

    def _promote(self) -> None:
        self.table.sql("ALTER TABLE {} ALTER COLUMN p TYPE bigint")

    def _order(self) -> None:
        self.table.sql(f"ALTER TABLE {{}} WRITE ORDERED BY {self.rng.choice(['id', 'token'])}")


def base_of(sides: Sides, rng: random.Random, version: int) -> Table:
    """Returns a table that may be empty, and may have been one of an older version."""
    before = version - (version > 1 and rng.random() < 0.2)
    table = sides.create(before, partitioned=rng.random() < 0.8)
    history = History(table, "b", rng, before)
    if rng.random() < 0.95:
        for partition in range(PARTITIONS):
            ids = [partition * 10 + number for number in range(IDS)]
            history.append(*ids[:3], partition=partition)
            history.append(*ids[3:], partition=partition)
        history.run(rng.randint(0, 2), definitions=False)
    if before < version:
        table.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('format-version' = '{version}')")
    return table


def run(sides: Sides, rng: random.Random, version: int) -> tuple[str, tuple[list[str], list[str]]]:
    """Runs one history. Returns its outcome, and the operations of both sides."""
    base = base_of(sides, rng, version).location
    rows = {base: sides.rows(base)[0]}
    made = []
    definitions = rng.random() < 0.5
    for name in "ot":
        history = History(sides.register(base), name, rng, version)
        history.run(rng.randint(1, 4), definitions=definitions)
        made.append(history)
    operations = (made[0].operations, made[1].operations)
    locations = [history.table.location for history in made]
    rows.update(zip(locations, sides.rows(*locations), strict=True))
    outcome = "combined"
    for ours, theirs in (locations, locations[::-1]):
        combination = sides.combine(base, ours, theirs)
        if combination.conflicts:
            outcome = "; ".join(
                sorted({getattr(each, "reason", str(each)) for each in combination.conflicts})
            )
            continue
        result = sides.written(combination, ours)
        check_result(document(result))
        if version > 2:
            check_lineage(sides, base, ours, theirs, result)
        fields = columns_of(result).values()
        expected = expected_rows(rows[base], rows[ours], rows[theirs], fields)
        (actual,) = sides.rows(result)
        assert actual == expected
        if can_read(document(result)):
            tokens = Counter(dict(row)[TOKEN] for row in actual.elements())
            assert duckdb_rows(result, "token") == tokens
        again = sides.combine(theirs, result, theirs)
        assert again.files.is_empty
        assert again.definitions.updates == []
    return outcome, operations


def check_lineage(sides: Sides, base: str, ours: str, theirs: str, result: str) -> None:
    """Checks the ids of rows: unique, and those of rows that existed stay.

    Rows of files that theirs restored get new ids, as Iceberg says.
    """
    of_ours, of_theirs, of_result = sides.lineage(ours, theirs, result)
    ids = [row_id for row_id, _ in of_result.values()]
    assert len(set(ids)) == len(ids), "row ids are unique"
    before = document(base)
    for token, (row_id, updated) in of_result.items():
        if token in of_ours and before["next-row-id"] == 0:
            # The base was upgraded: theirs rewrote files whose rows had no ids yet.
            assert row_id < document(result)["next-row-id"], token
        elif token in of_ours:
            assert (row_id, updated) == of_ours[token], token
        else:
            assert updated <= document(result)["last-sequence-number"], token
            if row_id < document(ours)["next-row-id"]:
                assert row_id == of_theirs[token][0], token
                # Both sides may have rewritten their manifests, which gives rows new ids: an
                # updated row then has the id that ours gave it.
                assert row_id < before["next-row-id"] or (
                    row_id == of_ours[token.rpartition("-")[0]][0]
                ), token
            else:
                assert updated > before["last-sequence-number"], token


@pytest.fixture(scope="module")
def sides(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    return Sides(spark, tmp_path_factory.mktemp("combinations"))


def test_histories_are_refused_or_give_the_rows_of_both(sides: Sides) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(COUNT):
        seed = f"{SEED}:{number}"
        rng = random.Random(seed)
        try:
            outcome, _ = run(sides, rng, 1 + number % 3)
        except Exception as error:
            error.add_note(f"NESSIE_TEST_SEED={SEED}, history {number}")
            raise
        outcomes[outcome] += 1
    print(outcomes)
    if COUNT >= 100:
        # A combination that always refuses would pass every other check.
        assert outcomes["combined"] > 0.3 * COUNT, outcomes
