"""Tables that Spark changed on two sides, merged by rows: rows and row ids in every engine.

`NESSIE_TEST_SPARK_ROW_MERGES=N` is the number of merges.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import pytest
from msgspec import structs
from pyiceberg.table import StaticTable

from nessie_cli import Put, connect, create
from nessie_cli.audit.findings import AuditCounts
from nessie_cli.audit.local import findings
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.model import (
    CombinationRules,
    CombinedTable,
    CommitMeta,
    ContentKey,
    IcebergTable,
    KeyRange,
    RowDecision,
    RowRules,
    row_key_text,
)
from tests.engines.served import extension
from tests.iceberg.row_merge.keyed import Conflicts, Row, Rows, merged, same
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.results import check_result
from tests.spark.sides import Sides, Table, document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
COUNT = int(os.environ.get("NESSIE_TEST_SPARK_ROW_MERGES", "1"))
SEED = os.environ.get("NESSIE_TEST_SEED", "0")
KEYS = 12


def _field(id_: int, name: str, type_: Any, *, required: bool = False) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": required}


SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        _field(1, "id", "long", required=True),
        _field(2, "text", "string", required=True),
        _field(3, "money", "decimal(12, 3)"),
        _field(4, "at", "timestamptz", required=True),
        _field(5, "local", "timestamp"),
        _field(6, "u", "uuid"),
        _field(7, "place", {"type": "struct", "fields": [_field(20, "x", "int", required=True)]}),
        _field(
            8,
            "list",
            {"type": "list", "element-id": 21, "element": "int", "element-required": False},
        ),
        _field(
            9,
            "map",
            {
                "type": "map",
                "key-id": 22,
                "key": "string",
                "value-id": 23,
                "value": "int",
                "value-required": False,
            },
        ),
        _field(10, "f", "double"),
        _field(11, "b", "binary"),
    ],
}
VALUES: dict[str, list[Any]] = {
    "text": ["", "x", "y"],
    "money": [Decimal("0.000"), Decimal("-12345678.125"), None],
    "at": [datetime(2024, month, 1, 12, tzinfo=UTC) for month in (1, 2, 3)],
    "local": [datetime(1969, 12, 31, 23), datetime(2024, 1, 1, 0, 0, 0, 1), None],
    "u": ["f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000001", None],
    "place": [{"x": 1}, {"x": 2}, None],
    "list": [[], [1], [1, None], None],
    "map": [{}, {"a": 1}, {"a": 1, "b": None}, None],
    "f": [float("nan"), 0.0, -0.0, 1.5, None],
    "b": [b"", b"\0\xff", None],
}
COLUMNS = tuple(VALUES)
PARTITIONS = [
    [],
    [{"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[2]"}],
    [{"source-id": 2, "field-id": 1000, "name": "text", "transform": "identity"}],
    [{"source-id": 4, "field-id": 1000, "name": "at_day", "transform": "day"}],
    [
        {"source-id": 6, "field-id": 1000, "name": "u_bucket", "transform": "bucket[2]"},
        {"source-id": 3, "field-id": 1001, "name": "money_trunc", "transform": "truncate[10]"},
    ],
]
MODES = ("copy-on-write", "merge-on-read")


class Merges:
    """Keyed tables in Spark, and the audit of what they were merged to."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.sides = Sides(spark, folder)
        self.store = f"sqlite:///{folder}/catalog.sqlite"
        create(self.store).close()

    def table(self, rng: random.Random, version: int) -> Table:
        """Returns an empty table."""
        sides, iceberg = self.sides, self.sides.iceberg
        schema = iceberg.SchemaParser.fromJson(json.dumps(SCHEMA))
        spec = {"spec-id": 0, "fields": rng.choice(PARTITIONS)}
        name = f"k{rng.randrange(10**9)}"
        properties = sides.jvm.java.util.HashMap()
        properties.put("format-version", str(version))
        properties.put("write.delete.granularity", rng.choice(["file", "partition"]))
        sides.catalog.createTable(
            sides.identifier(name),
            schema,
            iceberg.PartitionSpecParser.fromJson(schema, json.dumps(spec)),
            properties,
        )
        return Table(sides, name)

    def change(self, table: Table, before: Rows, after: Rows, mode: str) -> None:
        """Changes the rows of a table by one statement."""
        session = self.sides.session
        rows = [
            (
                key,
                key not in after,
                *(after.get(key, before.get(key, {}))[name] for name in COLUMNS),
            )
            for key in sorted(before.keys() | after.keys())
            if not same(before.get(key), after.get(key))
        ]
        if not rows:
            return
        fields = session.table(f"lake.db.{table.name}").schema.fields
        columns = [f"`{field.name}` {field.dataType.simpleString()}" for field in fields]
        columns.insert(1, "gone boolean")
        session.createDataFrame(rows, ", ".join(columns)).createOrReplaceTempView("edits")
        names = ", ".join(f"`{name}` = e.`{name}`" for name in COLUMNS)
        every = ("id", *COLUMNS)
        table.with_properties(
            lambda: table.sql(
                "MERGE INTO {} t USING edits e ON t.id = e.id"
                f" WHEN MATCHED AND e.gone THEN DELETE WHEN MATCHED THEN UPDATE SET {names}"
                f" WHEN NOT MATCHED THEN INSERT ({', '.join(f'`{n}`' for n in every)})"
                f" VALUES ({', '.join(f'e.`{n}`' for n in every)})"
            ),
            write_merge_mode=mode,
        )

    def rows(self, table: Table) -> Rows:
        """Returns the rows as Spark reads them."""
        frame = self.sides.session.table(f"lake.db.{table.name}")
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: _normal(row) for row in rows}

    def row_ids(self, table: Table) -> dict[int, int]:
        rows = self.sides.sql(f"SELECT id, _row_id FROM lake.db.{table.name}")
        ids: dict[int, int] = dict(rows)
        assert len(set(ids.values())) == len(rows) == len(ids), "each row has an id of its own"
        assert None not in ids.values()
        return ids

    def audited(self, key: str, content: IcebergTable) -> None:
        """Checks a table as `nessie audit` does."""
        with connect(self.store, who="ann") as repository:
            new = structs.replace(content, id=None)
            repository.commit("main", [Put(ContentKey((key,)), new)], CommitMeta(message="x"))
            entries = repository.entries("main", KeyRange(prefix=ContentKey((key,))), content=True)
            assert list(findings(entries, AuditCounts())) == []


def _normal(row: Row) -> Row:
    """Returns the values of a row in one form for all engines."""
    return {name: _value(name, row[name]) for name in COLUMNS}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "at":
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    if name == "map":
        return dict(sorted(dict(value).items()))
    if name == "u":
        return str(UUID(bytes=value) if isinstance(value, bytes) else value)
    return bytes(value) if name == "b" else value


def duckdb_read(location: str) -> Rows:
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{extension(name)}'")
    connection.execute("SET TimeZone = 'UTC'")
    columns = ", ".join(f'"{name}"' for name in ("id", *COLUMNS))
    read = connection.execute(f"SELECT {columns} FROM iceberg_scan('{location}')")
    return _by_id(read.to_arrow_table())


def _by_id(table: Any) -> Rows:
    rows = [
        dict(zip(table.column_names, values, strict=True))
        for values in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: _normal(row) for row in rows}


def edited(rows: Rows, rng: random.Random) -> Rows:
    """Some random edits of rows."""
    rows = {key: dict(row) for key, row in rows.items()}
    for key in rng.sample(range(KEYS), 5):
        if key not in rows:
            rows[key] = {name: rng.choice(values) for name, values in VALUES.items()}
        elif rng.random() < 0.25:
            del rows[key]
        else:
            for name in rng.sample(COLUMNS, rng.randint(1, 2)):
                rows[key][name] = rng.choice(VALUES[name])
    return rows


def content(location: str) -> IcebergTable:
    table = content_of(document(location), location)
    assert isinstance(table, IcebergTable)
    return structs.replace(table, id="t")


def combined(locations: list[str], rules: RowRules) -> CombinedTable:
    base, ours, theirs = map(content, locations)
    key = ContentKey(("t",))
    states = TableStates(None, "", key, key, key, key, base, ours, theirs)
    return FileCombiner(Files(), "a merge", CombinationRules(rows=rules)).combine(states)


def run(merges: Merges, rng: random.Random, version: int) -> str:
    """Merges one table. Returns the outcome."""
    table = merges.table(rng, version)
    start: Rows = {}
    for _ in range(2):
        rows = edited(start, rng)
        merges.change(table, start, rows, rng.choice(MODES))
        start = rows
    base = table.location
    sides, states = [], []
    for _ in range(2):
        side, rows = merges.sides.register(base), start
        for _ in range(rng.randint(1, 2)):
            new = edited(rows, rng)
            merges.change(side, rows, new, rng.choice(MODES))
            rows = new
        if rng.random() < 0.2:
            merges.sides.sql(
                f"CALL lake.system.rewrite_data_files('db.{side.name}',"
                " options => map('rewrite-all', 'true'))"
            )
        sides.append(side)
        states.append(rows)
    locations = [base, *(side.location for side in sides)]
    decided: dict[Any, str] = {}

    def choose(key: int, name: str | None) -> str:
        return decided.setdefault((key, name), rng.choice(["ours", "theirs"]))

    whole = rng.random() < 0.3
    rules = RowRules(whole_rows=whole)
    expected, conflicts = merged(start, *states, whole=whole, side=choose, columns=COLUMNS)
    result = combined(locations, rules)
    outcome = "merged"
    if conflicts:
        assert conflicts_of(result) == conflicts
        outcome = "decided"
        key = ContentKey(("t",))
        decisions = tuple(
            RowDecision(key, row_key_text({"id": id_}), name, choose(id_, name) == "theirs")
            for id_, name in conflicts
        )
        result = combined(locations, RowRules(whole_rows=whole, decisions=decisions))
    assert result.content is not None, result.collisions
    written = result.content.metadata_location
    check_result(document(written))
    after = merges.sides.register(written)
    check_rows(merges, after, expected, version)
    if version > 2:
        check_row_ids(merges, sides[0], after, document(locations[1])["next-row-id"])
    merges.audited(after.name, result.content)
    go_on(merges, after, expected, rng)
    return outcome


def conflicts_of(table: CombinedTable) -> Conflicts:
    assert table.content is None
    return {(row.key["id"], row.column) for each in table.collisions for row in each.rows}


def check_rows(merges: Merges, table: Table, expected: Rows, version: int) -> None:
    location = table.location
    assert_equal(merges.rows(table), expected)
    assert_equal(duckdb_read(location), expected)
    if version == 2:
        assert_equal(_by_id(StaticTable.from_metadata(location).scan().to_arrow()), expected)


def assert_equal(rows: Rows, expected: Rows) -> None:
    assert rows.keys() == expected.keys()
    for key, row in rows.items():
        assert repr(row) == repr({name: expected[key][name] for name in COLUMNS}), key


def check_row_ids(merges: Merges, ours: Table, result: Table, next_row_id: int) -> None:
    """Rows of ours keep their ids, and others get new ones."""
    before = merges.row_ids(ours)
    for key, row_id in merges.row_ids(result).items():
        assert row_id == before[key] if key in before else row_id >= next_row_id


def go_on(merges: Merges, table: Table, rows: Rows, rng: random.Random) -> None:
    """Spark changes, compacts and expires a merged table."""
    version = int(document(table.location)["format-version"])
    for mode in MODES:
        new = edited(rows, rng)
        merges.change(table, rows, new, mode)
        rows = new
    table.sql(f"DELETE FROM {{}} WHERE id = {min(rows)}")
    del rows[min(rows)]
    name = f"'db.{table.name}'"
    merges.sides.sql(
        f"CALL lake.system.rewrite_data_files({name}, options => map('rewrite-all', 'true'))"
    )
    merges.sides.sql(f"CALL lake.system.expire_snapshots({name}, TIMESTAMP '2100-01-01', 1)")
    assert_equal(merges.rows(table), rows)
    assert_equal(duckdb_read(table.location), rows)
    if version > 2:
        merges.row_ids(table)


@pytest.fixture(scope="module")
def merges(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Merges:
    return Merges(spark, tmp_path_factory.mktemp("merged"))


def test_every_engine_reads_the_rows_of_the_model(merges: Merges) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(COUNT):
        seed = f"{SEED}:{number}"
        try:
            outcomes[run(merges, random.Random(seed), 2 + number % 2)] += 1
        except Exception as error:
            error.add_note(f"NESSIE_TEST_SEED={SEED}, merge {number}")
            raise
    if COUNT >= 20:
        assert min(outcomes["merged"], outcomes["decided"]) > 0.1 * COUNT, outcomes


def test_a_table_of_another_format_is_refused(merges: Merges) -> None:
    table = merges.table(random.Random(1), 2)
    table.sql("ALTER TABLE {} SET TBLPROPERTIES ('write.format.default' = 'orc')")
    start = edited({}, random.Random(1))
    merges.change(table, {}, start, "copy-on-write")
    base, locations = table.location, []
    for text in ("x", "y"):
        side = merges.sides.register(base)
        rows = {key: {**row, "text": text} for key, row in start.items()}
        merges.change(side, start, rows, "copy-on-write")
        locations.append(side.location)
    with pytest.raises(InvalidInput, match="is of the format ORC, which is not supported"):
        combined([base, *locations], RowRules())
