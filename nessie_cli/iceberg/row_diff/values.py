"""Values of rows as JSON: the single-value serialization of the Iceberg specification.

https://iceberg.apache.org/spec/#json-single-value-serialization. It differs in two points: a struct
has the names of its fields, not their ids, and numbers that JSON lacks are texts, such as `NaN`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nessie_cli.iceberg.row_diff.arrays import as_list, offsets
from nessie_cli.iceberg.row_diff.dates import date_text, timestamp_text

_DAY = 24 * 60 * 60 * 10**6


def json_values(array: pa.Array) -> list[Any]:
    """Returns the values of an array as JSON."""
    type_ = array.type
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        columns = [json_values(column) for column in array.flatten()]
        rows = [
            dict(zip(names, row, strict=True))
            for row in (zip(*columns, strict=True) if columns else [()] * len(array))
        ]
        return _with_nulls(rows, array)
    if pa.types.is_map(type_):
        entries = as_list(array)
        keys, values = map(json_values, entries.flatten().flatten())
        ranges = pairwise(offsets(entries).to_pylist())
        maps = [{"keys": keys[start:end], "values": values[start:end]} for start, end in ranges]
        return _with_nulls(maps, array)
    if pa.types.is_nested(type_):
        values = json_values(array.flatten())
        lists = [values[start:end] for start, end in pairwise(offsets(array).to_pylist())]
        return _with_nulls(lists, array)
    return _primitives(array)


def _primitives(array: pa.Array) -> list[Any]:
    type_ = array.type
    if pa.types.is_timestamp(type_):
        return _timestamps(array)
    if pa.types.is_date(type_):
        days = array.cast(pa.int32()).to_pylist()
        return [None if day is None else date_text(day) for day in days]
    if pa.types.is_time(type_):
        return _times(array)
    if pa.types.is_large_string(type_):
        return _texts(array)
    return [None if value is None else _json_value(value) for value in array.to_pylist()]


def _timestamps(array: pa.Array) -> list[str | None]:
    second = 10**9 if array.type.unit == "ns" else 10**6
    zone = "+00:00" if array.type.tz else ""
    values = array.cast(pa.int64()).to_pylist()
    return [None if each is None else timestamp_text(each, second) + zone for each in values]


def _times(array: pa.Array) -> list[str | None]:
    """Returns times of day. One outside of the day, which a damaged file has, is a number."""
    values = array.cast(pa.int64()).to_pylist()
    is_time = [value is not None and 0 <= value < _DAY for value in values]
    valid = pc.if_else(pa.array(is_time), array, None).to_pylist()
    return [
        None if value is None else str(value if time is None else time)
        for value, time in zip(values, valid, strict=True)
    ]


def _texts(array: pa.Array) -> list[str | None]:
    r"""Returns texts. Bytes that are not UTF-8, which some writers write, are as in `\xff`."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        values = array.cast(pa.large_binary()).to_pylist()
        return [None if each is None else each.decode(errors="backslashreplace") for each in values]


def _with_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    valid = array.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


def _json_value(value: Any) -> Any:
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    # Without an exponent: 0.0000000 is 0E-7 otherwise.
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
