"""Partitions of merged rows, for types of columns that PyIceberg does not write itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
)
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    IcebergType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.row_diff.schemas import arrow_type
from nessie_cli.iceberg.row_merge.data_files import DataFileForm, DataFileWriter

NAN = float("nan")
HOUR = 3_600 * 10**9
IN_2017 = 1_510_871_468_000_001_001
"""A time in nanoseconds: its microseconds are those of an example of the specification."""
BUCKETS = 2**31 - 1


@pytest.mark.parametrize(
    ("type_", "transform", "values", "partitions"),
    [
        (TimestampNanoType(), IdentityTransform(), [1, -1, 1, None], [1, -1, None]),
        (TimestampNanoType(), DayTransform(), [0, -1, 24 * HOUR], [0, -1, 1]),
        (TimestamptzNanoType(), HourTransform(), [0, -1, HOUR], [0, -1, 1]),
        (TimestampNanoType(), BucketTransform(BUCKETS), [IN_2017], [-1207196810 & BUCKETS]),
        (BinaryType(), TruncateTransform(1), [b"ab", b"a", b"", None], [b"a", b"", None]),
        (
            DoubleType(),
            IdentityTransform(),
            [0.0, -0.0, NAN, 0.0, NAN, None],
            [0.0, -0.0, NAN, None],
        ),
    ],
)
def test_partitions(
    type_: IcebergType, transform: Transform[Any, Any], values: list[Any], partitions: list[Any]
) -> None:
    schema = Schema(NestedField(1, "x", type_))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    files: dict[str, bytes] = {}
    form = DataFileForm(schema, spec, {}, "folder", "manifest", row_ids=False)
    writer = DataFileWriter(form, files.__setitem__)
    rows = pa.StructArray.from_arrays([pa.array(values, arrow_type(type_))], ["x"])
    writer.add(rows, pa.nulls(len(values), pa.int64()))
    writer.close()
    assert [repr(file.row["partition"][1000]) for file in writer.files] == list(
        map(repr, partitions)
    )
    assert sum(file.records for file in writer.files) == len(values)


def test_a_void_partition_of_a_dropped_column() -> None:
    schema = Schema(NestedField(1, "x", DoubleType()))
    spec = PartitionSpec(PartitionField(9, 1000, VoidTransform(), "p"))
    form = DataFileForm(schema, spec, {}, "folder", "manifest", row_ids=False)
    writer = DataFileWriter(form, lambda *_: None)
    rows = pa.StructArray.from_arrays([pa.array([1.0, 2.0])], ["x"])
    writer.add(rows, pa.nulls(2, pa.int64()))
    writer.close()
    assert [file.row["partition"] for file in writer.files] == [{1000: None}]


def test_a_text_without_an_upper_bound() -> None:
    """No character follows U+D7FF at the end of a bound of 16 characters."""
    text = "a" * 15 + "\ud7ff" * 3
    bounds = texts_written({}, text).files[0].row
    assert "upper_bounds" not in bounds or not bounds["upper_bounds"]
    assert bounds["value_counts"] == [{"key": 1, "value": 1}]


def test_a_text_that_is_not_utf_8() -> None:
    """Some writers write them."""
    column = pa.array([b"\xff"], pa.large_binary())
    text = pa.Array.from_buffers(pa.large_string(), 1, column.buffers())
    schema = Schema(NestedField(1, "x", StringType()))
    form = DataFileForm(schema, PartitionSpec(), {}, "folder", "manifest", row_ids=False)
    writer = DataFileWriter(form, lambda *_: None)
    writer.add(pa.StructArray.from_arrays([text], ["x"]), pa.nulls(1, pa.int64()))
    writer.close()
    assert writer.files[0].row["value_counts"] == [{"key": 1, "value": 1}]
    assert not writer.files[0].row.get("lower_bounds")


def test_invalid_statistics_of_a_table_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"write.metadata.metrics .* mode: nonsense"):
        texts_written({"write.metadata.metrics.default": "nonsense"}, "a")


def texts_written(properties: dict[str, str], text: str) -> DataFileWriter:
    schema = Schema(NestedField(1, "x", StringType()))
    spec = PartitionSpec()
    form = DataFileForm(schema, spec, properties, "folder", "manifest", row_ids=False)
    writer = DataFileWriter(form, lambda *_: None)
    rows = pa.StructArray.from_arrays([pa.array([text], arrow_type(StringType()))], ["x"])
    writer.add(rows, pa.nulls(1, pa.int64()))
    writer.close()
    return writer
