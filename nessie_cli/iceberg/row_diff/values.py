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

from nessie_cli.iceberg.row_diff.arrays import as_list, offsets


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
    if pa.types.is_timestamp(type_):
        # datetime has neither nanoseconds nor years beyond 9999.
        texts = array.cast(pa.string()).to_pylist()
        return [text and text.replace(" ", "T").replace("Z", "+00:00") for text in texts]
    return [None if value is None else _json_value(value) for value in array.to_pylist()]


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
