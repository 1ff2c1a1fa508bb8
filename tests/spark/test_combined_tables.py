"""Combined tables in Spark and Java: later writes, maintenance, metadata tables, row ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.iceberg.combination.duck import duckdb_rows
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.operations import base_table, values
from tests.spark.results import check_result
from tests.spark.sides import Sides, Table, document, path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
METADATA_TABLES = (
    *("entries", "files", "data_files", "delete_files", "manifests", "snapshots", "history"),
    *("partitions", "refs", "metadata_log_entries", "all_files", "all_data_files", "all_entries"),
    *("all_delete_files", "all_manifests"),
)


@pytest.fixture(scope="module")
def sides(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    return Sides(spark, tmp_path_factory.mktemp("combined"))


class Bases:
    """The location of a base table of each format version.

    Tests share it, unless they remove files: changes are made to copies of its metadata.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._locations: dict[int, str] = {}

    def __getitem__(self, version: int) -> str:
        if version not in self._locations:
            self._locations[version] = base_table(self._sides, version).location
        return self._locations[version]


@pytest.fixture(scope="module")
def bases(sides: Sides) -> Bases:
    return Bases(sides)


def combined(sides: Sides, base: str, ours: str, theirs: str) -> str:
    """Combines both sides. Returns the metadata file of the result."""
    combination = sides.combine(base, ours, theirs)
    assert combination.conflicts == []
    result = sides.written(combination, ours)
    check_result(document(result))
    return result


def changed(sides: Sides, start: str, *changes: Callable[[Table], object]) -> str:
    table = sides.register(start)
    for change in changes:
        change(table)
    return table.location


def sql(statement: str) -> Callable[[Table], object]:
    return lambda table: table.sql(statement)


def tokens(table: Table) -> set[str]:
    return {token for (token,) in table.sides.sql(f"SELECT token FROM lake.db.{table.name}")}


def result_of(sides: Sides, base: str) -> Table:
    """Returns a combined table: rows were appended, deleted and updated on both sides."""
    ours = changed(
        sides,
        base,
        sql("INSERT INTO {} VALUES " + values(20, 21, partition=0, side="o")),
        sql("DELETE FROM {} WHERE p = 0 AND id = 1"),
    )
    theirs = changed(
        sides,
        base,
        sql("UPDATE {} SET token = 'updated' WHERE p = 1 AND id = 14"),
        sql("DELETE FROM {} WHERE p = 1 AND id = 12"),
        sql("INSERT INTO {} VALUES " + values(30, 31, partition=2, side="t")),
    )
    return sides.register(combined(sides, base, ours, theirs))


@pytest.fixture(params=[1, 2, 3])
def result(request: pytest.FixtureRequest, sides: Sides) -> Table:
    """A combined table that shares no files with other tests."""
    return result_of(sides, base_table(sides, request.param).location)


EXPECTED = {"b2", "b4", "b5", "b6", "b11", "b15", "updated", "o20", "o21", "t30", "t31"}


def rows_of(version: int) -> set[str]:
    return EXPECTED | ({"b3", "b13"} if version == 1 else set())


def test_spark_goes_on_from_a_combined_table(sides: Sides, result: Table) -> None:
    expected = rows_of(document(result.location)["format-version"])
    assert tokens(result) == expected
    assert duckdb_rows(result.location, "token") == Counter(expected)
    result.sql("INSERT INTO {} VALUES (99, 0, 'later', 'x')")
    result.sql("DELETE FROM {} WHERE p = 2 AND id = 30")
    result.sql("UPDATE {} SET token = 'again' WHERE p = 0 AND id = 2")
    expected = expected - {"t30", "b2"} | {"later", "again"}
    assert tokens(result) == expected
    sides.sql(
        f"CALL lake.system.rewrite_data_files('db.{result.name}', options => map('rewrite-all', 'true'))"
    )
    assert tokens(result) == expected
    sides.sql(f"CALL lake.system.expire_snapshots('db.{result.name}', TIMESTAMP '2100-01-01', 1)")
    assert tokens(result) == expected
    location = path_of(result.java.location())
    orphan = location / "data" / "orphan.parquet"
    orphan.write_bytes(b"x")
    actions = sides.iceberg.spark.actions.SparkActions.get(sides.session._jsparkSession)
    removal = actions.deleteOrphanFiles(result.java).olderThan(4_000_000_000_000).execute()
    removed = list(removal.orphanFileLocations())
    assert any("orphan.parquet" in path for path in removed)
    assert tokens(result) == expected
    assert duckdb_rows(result.location, "token") == Counter(expected)


def test_the_combined_snapshot_survives_the_expiry_of_those_before(
    sides: Sides, result: Table
) -> None:
    expected = tokens(result)
    snapshot = result.java.currentSnapshot().snapshotId()
    result.sql("DELETE FROM {} WHERE p = 0")
    expiry = result.java.expireSnapshots().retainLast(2).expireOlderThan(4_000_000_000_000)
    expiry.commit()
    read = sides.sql(f"SELECT token FROM lake.db.{result.name} VERSION AS OF {snapshot}")
    assert {token for (token,) in read} == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metadata_tables_can_be_read(sides: Sides, bases: Bases, version: int) -> None:
    result = result_of(sides, bases[version])
    rows = {
        name: sides.sql(f"SELECT * FROM lake.db.{result.name}.{name}") for name in METADATA_TABLES
    }
    assert all(rows[name] for name in METADATA_TABLES if "delete" not in name)
    counts: list[Any] = sides.sql(
        f"SELECT sum(record_count), sum(position_delete_record_count) FROM lake.db.{result.name}.partitions"
    )
    assert counts[0][0] == sum(
        row[0] for row in sides.sql(f"SELECT record_count FROM lake.db.{result.name}.data_files")
    )
    assert counts[0][1] == (0 if version == 1 else 4 + 1)


def test_changes_of_a_combined_table_are_in_its_changelog(sides: Sides, bases: Bases) -> None:
    """Appends of theirs are new rows for readers of increments."""
    base = bases[2]
    ours, theirs = (
        changed(sides, base, sql("INSERT INTO {} VALUES " + values(id_, partition=0, side=side)))
        for id_, side in ((20, "o"), (30, "t"))
    )
    table = sides.register(combined(sides, base, ours, theirs))
    start = document(base)["current-snapshot-id"]
    read = sides.session.read.format("iceberg").option("start-snapshot-id", str(start))
    assert {row.token for row in read.load(f"lake.db.{table.name}").collect()} == {"o20", "t30"}


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_ids_of_rows_that_theirs_gave_out_are_not_given_out_again(
    sides: Sides, bases: Bases, turned: bool
) -> None:
    """Format version 3: a file that theirs rewrote contains the ids of its rows."""
    base = bases[3]
    ours = changed(sides, base, sql("DELETE FROM {} WHERE p = 1 AND id = 14"))

    def rewrite(table: Table) -> None:
        table.with_properties(
            lambda: table.sql("DELETE FROM {} WHERE p = 2 AND id < 36"),
            write_delete_mode="copy-on-write",
        )

    theirs = changed(
        sides,
        base,
        sql("INSERT INTO {} VALUES " + values(*range(30, 38), partition=2, side="t")),
        rewrite,
    )
    if turned:
        ours, theirs = theirs, ours
    table = sides.register(combined(sides, base, ours, theirs))
    table.sql("INSERT INTO {} VALUES " + values(*range(50, 60), partition=0, side="n"))
    (lineage,) = sides.lineage(table.location)
    assert len({row_id for row_id, _ in lineage.values()}) == len(lineage)


def update(mode: str, id_: int, partition: int) -> Callable[[Table], object]:
    """Returns a change of one row, which keeps its id."""
    return lambda table: table.with_properties(
        lambda: table.sql(f"UPDATE {{}} SET token = 'u' WHERE p = {partition} AND id = {id_}"),
        write_update_mode=mode,
    )


def insert(side: str, *ids: int) -> Callable[[Table], object]:
    return sql("INSERT INTO {} VALUES " + values(*ids, partition=0, side=side))


def check_row_ids(sides: Sides, base: str, ours: str, theirs: str) -> bool:
    """Combines both sides. Returns whether they combine; then each row has an id of its own."""
    combination = sides.combine(base, ours, theirs)
    if combination.conflicts:
        (conflict,) = combination.conflicts
        assert "row" in str(getattr(conflict, "reason", "")), conflict
        return False
    (lineage,) = sides.lineage(sides.written(combination, ours))
    assert len({row_id for row_id, _ in lineage.values()}) == len(lineage)
    return True


MODES = pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])


@MODES
def test_ids_that_both_sides_gave_to_the_rows_of_the_base(
    sides: Sides, bases: Bases, mode: str
) -> None:
    """The base was upgraded, and no commit since has given ids to its rows."""
    upgrade = sql("ALTER TABLE {} SET TBLPROPERTIES ('format-version' = '3')")
    base = changed(sides, bases[2], upgrade)
    ours = changed(sides, base, insert("o", 20))
    theirs = changed(sides, base, insert("t", *range(30, 36)), update(mode, 1, 0))
    assert not check_row_ids(sides, base, ours, theirs)


def test_ids_of_rows_of_ours_stay_after_an_upgrade(sides: Sides) -> None:
    """The first commit of ours gives ids to rows in manifests that the base has without them."""
    table = sides.create(2)
    # A manifest with files that stay and a file that goes.
    rows = values(1, 2, partition=0, side="b"), values(11, 12, 13, partition=1, side="b")
    table.sql(f"INSERT INTO {{}} VALUES {', '.join(rows)}")
    table.sql("ALTER TABLE {} SET TBLPROPERTIES ('format-version' = '3')")
    base = table.location
    ours = changed(sides, base, insert("o", 20))
    theirs = changed(sides, base, sql("DELETE FROM {} WHERE p = 1"))
    result = combined(sides, base, ours, theirs)
    before, after = sides.lineage(ours, result)
    assert after == {token: before[token] for token in after}
    assert len(after) < len(before)


def test_ids_of_rows_that_theirs_added_and_changed(sides: Sides, bases: Bases) -> None:
    base = bases[3]
    ours = changed(sides, base, insert("o", *range(20, 26)))
    theirs = changed(sides, base, insert("t", *range(30, 36)), update("merge-on-read", 32, 0))
    assert not check_row_ids(sides, base, ours, theirs)


@pytest.mark.parametrize(("mode", "backwards"), [("copy-on-write", False), ("merge-on-read", True)])
def test_ids_of_rows_in_a_second_merge(
    sides: Sides, bases: Bases, mode: str, backwards: bool
) -> None:
    """The first merge has given new ids to the rows of theirs."""
    base = bases[3]
    ours = changed(sides, base, insert("o", *range(20, 26)))
    theirs = changed(sides, base, insert("t", *range(30, 36)))
    merged = combined(sides, base, ours, theirs)
    sides_now = merged, changed(sides, theirs, update(mode, 32, 0))
    if backwards:
        sides_now = (
            changed(sides, theirs, insert("n", 40)),
            changed(sides, merged, update(mode, 32, 0)),
        )
    assert not check_row_ids(sides, theirs, *sides_now)
    # Rows of the base have the same ids everywhere.
    assert check_row_ids(sides, theirs, merged, changed(sides, theirs, update(mode, 1, 0)))


@pytest.mark.parametrize("version", [2, 3])
def test_a_deletion_is_taken_back_where_nobody_changed_the_file(
    sides: Sides, bases: Bases, version: int
) -> None:
    """As the revert of a commit that deleted a row."""
    parent = bases[version]
    commit = changed(sides, parent, sql("DELETE FROM {} WHERE p = 0 AND id = 1"))
    other = changed(sides, commit, sql("DELETE FROM {} WHERE p = 0 AND id = 4"))
    table = sides.register(combined(sides, commit, other, parent))
    assert "b1" in tokens(table)
    assert "b4" not in tokens(table)
    for change in (
        sql("DELETE FROM {} WHERE p = 0 AND id = 2"),
        sql("DELETE FROM {} WHERE p = 0"),
        update("copy-on-write", 2, 0),
    ):
        conflicts = sides.combine(commit, changed(sides, commit, change), parent).conflicts
        assert any("took deletions back" in str(getattr(each, "reason", "")) for each in conflicts)


def test_spark_reads_and_goes_on_from_united_vectors(sides: Sides) -> None:
    """Format version 3: both sides deleted rows of the same data files, and of others."""
    table = sides.create(3)
    for partition, start in ((0, 0), (1, 10)):
        rows = values(*range(start, start + 8), partition=partition, side="b")
        table.sql(f"INSERT INTO {{}} VALUES {rows}")
    table.sql("DELETE FROM {} WHERE id IN (0, 10)")
    base = table.location
    ours = changed(
        sides,
        base,
        sql("DELETE FROM {} WHERE id IN (1, 11)"),
        update("merge-on-read", 2, 0),
        insert("o", 20),
    )
    theirs = changed(
        sides,
        base,
        insert("t", 30),
        update("merge-on-read", 13, 1),
        sql("DELETE FROM {} WHERE id IN (1, 4, 12)"),
    )
    # Both sides deleted the row with the id 1, but it may have a new version.
    (conflict,) = sides.combine(base, ours, theirs).conflicts
    assert str(getattr(conflict, "reason", "")) == "both sides changed the same rows of one file"
    theirs = changed(
        sides,
        base,
        insert("t", 30),
        update("merge-on-read", 13, 1),
        sql("DELETE FROM {} WHERE id IN (4, 12)"),
    )
    before = {f"b{id_}" for id_ in (*range(8), *range(10, 18))}
    expected = before - {f"b{id_}" for id_ in (0, 1, 2, 4, 10, 11, 12, 13)} | {"o20", "t30"}
    for first, second in ((ours, theirs), (theirs, ours)):
        result = sides.register(combined(sides, base, first, second))
        location = result.location
        assert tokens(result) == expected | {"u"}
        assert duckdb_rows(location, "token") == Counter([*expected, "u", "u"])
        (lineage,) = sides.lineage(location)
        assert lineage.keys() == expected | {"u"}
        result.sql("DELETE FROM {} WHERE id IN (3, 14)")
        insert("n", 40)(result)
        after = expected - {"b3", "b14"} | {"n40", "u"}
        assert tokens(result) == after
        assert duckdb_rows(result.location, "token") == Counter([*after, "u"])
        # They also combine with later changes of each side.
        later = changed(sides, second, sql("DELETE FROM {} WHERE id = 5"))
        again = sides.register(combined(sides, second, location, later))
        assert tokens(again) == expected - {"b5"} | {"u"}
    for call in ("rewrite_position_delete_files", "rewrite_data_files"):
        options = "options => map('rewrite-all', 'true')"
        sides.sql(f"CALL lake.system.{call}(table => 'db.{result.name}', {options})")
        assert tokens(result) == after
    sides.sql(f"CALL lake.system.expire_snapshots('db.{result.name}', TIMESTAMP '2100-01-01', 1)")
    assert tokens(result) == after
    assert duckdb_rows(result.location, "token") == Counter([*after, "u"])


def rewrite_deletes(table: Table) -> None:
    options = "options => map('rewrite-all', 'true')"
    table.sides.sql(f"CALL lake.system.rewrite_position_delete_files('db.{table.name}', {options})")


@pytest.mark.parametrize(
    ("change", "deleted"),
    [(sql("DELETE FROM {} WHERE p = 0 AND id = 1"), {"b1"}), (rewrite_deletes, set())],
    ids=["delete", "rewrite"],
)
def test_java_goes_on_from_positions_that_are_in_two_files(
    sides: Sides, change: Callable[[Table], object], deleted: set[str]
) -> None:
    """Both sides replaced a delete file of the base, whose positions are in the files of both.

    Iceberg refuses these as concurrent commits.
    """
    base = base_table(sides, 2).location
    ours, theirs = changed(sides, base, change), changed(sides, base, rewrite_deletes)
    table = sides.register(combined(sides, base, ours, theirs))
    positions = Counter(
        sides.sql(f"SELECT file_path, pos FROM lake.db.{table.name}.position_deletes")
    )
    assert max(positions.values()) == 2
    before = {f"b{id_}" for id_ in (1, 2, 4, 5, 6, 11, 12, 14, 15)} - deleted
    assert duckdb_rows(table.location, "token") == Counter(before)
    after = before - {"b2", "b15"}
    sql("DELETE FROM {} WHERE id IN (2, 15)")(table)
    assert tokens(table) == after
    rewrite_deletes(table)
    assert tokens(table) == after
    sides.sql(f"CALL lake.system.expire_snapshots('db.{table.name}', TIMESTAMP '2100-01-01', 1)")
    assert tokens(table) == after
    assert duckdb_rows(table.location, "token") == Counter(after)


TYPES = {
    "date": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    "timestamp": (
        "TIMESTAMP '1901-02-03 04:05:06.000007'",
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ '0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ '2038-01-19 03:14:08.5'",
    ),
    "decimal(9,2)": ("-1234567.89", "0.01"),
    "decimal(38,10)": ("-1234567890123456789012345678.0123456789", "0.0000000001"),
    "binary": ("X'00FF80'", "X''"),
    "float": ("float('NaN')", "float('-0.0')"),
    "double": ("double('-Infinity')", "double('0.1')"),
    "boolean": ("true", "false"),
    "string": ("'\u00e4 /%=\U0001f40b'", "''"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
}


@pytest.mark.parametrize("version", [1, 2])
def test_partitions_of_each_type_stay(sides: Sides, version: int) -> None:
    columns = [f"c{number} {type_}" for number, type_ in enumerate(TYPES)]
    table = sides.create(version)
    table.sql(f"ALTER TABLE {{}} ADD COLUMNS ({', '.join(columns)})")
    spec, transforms = table.java.updateSpec(), sides.iceberg.expressions.Expressions
    for number in range(len(TYPES)):
        spec = spec.addField(f"c{number}")
    for field in (
        transforms.day("c1"),
        transforms.hour("c2"),
        transforms.truncate("c9", 4),
        transforms.bucket("c4", 3),
    ):
        spec = spec.addField(field)
    spec.commit()
    rows = [*zip(*TYPES.values(), strict=True), ("NULL",) * len(TYPES)]

    def insert_all(side: str) -> Callable[[Table], object]:
        listed = (
            f"({number}, 0, '{side}{number}', 'x', {', '.join(row)})"
            for number, row in enumerate(rows)
        )
        return sql(f"INSERT INTO {{}} VALUES {', '.join(listed)}")

    insert_all("b")(table)
    base = table.location
    ours = changed(sides, base, insert_all("o"), sql("DELETE FROM {} WHERE token = 'b0'"))
    theirs = changed(sides, base, insert_all("t"), sql("DELETE FROM {} WHERE token = 'b1'"))
    result = sides.register(combined(sides, base, ours, theirs))
    expected = {f"{side}{number}" for side in "bot" for number in range(3)} - {"b0", "b1"}
    assert tokens(result) == expected
    queries = {
        f"c{number} = CAST({value} AS {type_})": {f"{side}{place}" for side in "ot"}
        for number, (type_, values_) in enumerate(TYPES.items())
        for place, value in enumerate(values_)
    }
    read = sides.sql(
        " UNION ALL ".join(
            f"SELECT {number}, token FROM lake.db.{result.name} WHERE {where}"
            for number, where in enumerate(queries)
        )
    )
    for number, (where, expected_tokens) in enumerate(queries.items()):
        assert expected_tokens == {token for query, token in read if query == number}, where
    sides.sql(f"SELECT * FROM lake.db.{result.name}.partitions")
    result.sql("DELETE FROM {} WHERE c8")
    assert tokens(result) == {token for token in expected if not token.endswith("0")}
