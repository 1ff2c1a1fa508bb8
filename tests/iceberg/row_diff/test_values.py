"""Equality of values: as the Iceberg specification says, for each type."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import compare_tables
from tests.iceberg.row_diff.tables import CountingFiles, Folder, column, schema

OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
MAP = pa.map_(pa.string(), pa.int32())
LIST = {"type": "list", "element-id": 2, "element": "int", "element-required": False}
MAP_TYPE = {
    "type": "map",
    "key-id": 2,
    "key": "string",
    "value-id": 3,
    "value": "int",
    "value-required": False,
}
STRUCT_TYPE = {"type": "struct", "fields": [column(2, "a", "int"), column(3, "b", "string")]}
MICROS, NANOS = pa.timestamp("us"), pa.timestamp("ns")


def changed(tmp_path: Path, type_: Any, arrow: pa.DataType, old: Any, new: Any) -> tuple[Any, Any]:
    """How often each value was deleted and inserted."""
    folder = Folder(tmp_path, version=3)
    one = schema(column(1, "x", type_))
    ids = {} if pa.types.is_nested(arrow) else {"x": 1}
    mapping = '[{"field-id": 1, "names": ["x"], "fields": %s}]'
    inner = '[{"field-id": 2, "names": ["a", "key", "element"]}, {"field-id": 3, "names": ["b", "value"]}]'
    states = [
        folder.state(
            [folder.data(pa.table({"x": pa.array(values, arrow)}), ids)],
            one,
            snapshots=(number,),
            properties={"schema.name-mapping.default": mapping % inner},
        )
        for number, values in enumerate((old, new), 1)
    ]
    files = CountingFiles()
    changes = RowChanges(compare_tables(*states, files.read), files).read_all().to_pydict()
    rows = list(zip(changes["_change_type"], changes["x"], strict=True))
    return tuple([x for kind, x in rows if kind == each] for each in ("DELETE", "INSERT"))


@pytest.mark.parametrize(
    ("type_", "arrow", "values"),
    [
        ("boolean", pa.bool_(), [True, False]),
        ("int", pa.int32(), [0, -1, 2**31 - 1]),
        ("long", pa.int64(), [0, -(2**63)]),
        ("float", pa.float32(), [0.0, -0.0, 1.5, math.inf]),
        ("double", pa.float64(), [0.0, -0.0, -math.inf]),
        ("decimal(38, 2)", pa.decimal128(38, 2), [Decimal("1.20"), Decimal("9" * 36 + ".99")]),
        ("date", pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
        ("time", pa.time64("us"), [time(0), time(23, 59, 59, 999999)]),
        ("timestamp", MICROS, [datetime(1677, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
        ("timestamptz", pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC)]),
        ("timestamp_ns", NANOS, [datetime(1677, 9, 22), datetime(2262, 1, 1)]),
        ("string", pa.string(), ["", "e\u0301", "\u00e9", "a", "A"]),
        ("uuid", pa.binary(16), [bytes(16), b"0123456789abcdef"]),
        ("fixed[3]", pa.binary(3), [b"abc", b"abd"]),
        ("binary", pa.binary(), [b"", b"\0", b"\xff"]),
        ("geometry", pa.binary(), [b"\1", b"\2"]),
        (LIST, pa.list_(pa.int32()), [[], [1], [1, 2], [2, 1], [None]]),
        (MAP_TYPE, MAP, [[], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)]]),
        (STRUCT_TYPE, STRUCT, [{"a": 1, "b": "x"}, {"a": None, "b": None}]),
    ],
)
def test_each_value_is_itself_and_no_other(
    type_: Any, arrow: pa.DataType, values: list[Any], tmp_path: Path
) -> None:
    values = [*values, None]
    deleted, inserted = changed(tmp_path, type_, arrow, values, values[::-1])
    assert (deleted, inserted) == ([], [])
    more = [value for value in values for _ in range(2)]
    deleted, inserted = changed(tmp_path, type_, arrow, values, more)
    assert deleted == []
    shown = [UUID(bytes=v) if type_ == "uuid" and v is not None else v for v in values]
    assert sorted(map(str, inserted)) == sorted(map(str, shown))
    deleted, inserted = changed(tmp_path, type_, arrow, values[:1], values[1:2])
    assert [*map(str, deleted), *map(str, inserted)] == list(map(str, shown[:2]))


@pytest.mark.parametrize(
    ("type_", "arrow", "old", "new"),
    [
        ("double", pa.float64(), [math.nan], [OTHER_NAN]),
        ("float", pa.float32(), [math.nan], [-math.nan]),
        (MAP_TYPE, MAP, [[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]]),
        ("unknown", pa.null(), [None, None], [None, None]),
    ],
)
def test_equal_values_with_different_bytes(
    type_: Any, arrow: pa.DataType, old: Any, new: Any, tmp_path: Path
) -> None:
    assert changed(tmp_path, type_, arrow, old, new) == ([], [])


def test_a_zone_is_not_part_of_an_instant(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    instant = datetime(2026, 1, 1, 12, tzinfo=UTC)
    states = [
        folder.state(
            [folder.data(pa.table({"x": pa.array([instant], pa.timestamp("us", zone))}), {"x": 1})],
            schema(column(1, "x", "timestamptz")),
            snapshots=(number,),
        )
        for number, zone in enumerate(("UTC", "America/Lima"), 1)
    ]
    files = CountingFiles()
    assert RowChanges(compare_tables(*states, files.read), files).read_all().num_rows == 0


def test_a_duplicate_key_of_a_map_counts(tmp_path: Path) -> None:
    two = [[("a", 1), ("a", 1)]]
    deleted, inserted = changed(tmp_path, MAP_TYPE, MAP, two, [[("a", 1)]])
    assert (len(deleted), len(inserted)) == (1, 1)


def test_many_equal_rows(tmp_path: Path) -> None:
    old, new = ["x"] * 300_000, ["x"] * 299_998
    deleted, inserted = changed(tmp_path, "string", pa.string(), old, new)
    assert (deleted, inserted) == (["x", "x"], [])


def test_the_parts_of_a_row_are_apart(tmp_path: Path) -> None:
    """Values that are equal if they are put together are not equal rows."""
    folder = Folder(tmp_path)
    columns = schema(column(1, "a", "string"), column(2, "b", "string"))
    rows = [{"a": ["ab"], "b": ["c"]}, {"a": ["a"], "b": ["bc"]}]
    states = [
        folder.state([folder.data(pa.table(row), {"a": 1, "b": 2})], columns, snapshots=(number,))
        for number, row in enumerate(rows, 1)
    ]
    files = CountingFiles()
    assert RowChanges(compare_tables(*states, files.read), files).read_all().num_rows == 2
