"""Values as JSON, also those that Python has no type for."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.iceberg.row_diff.dates import date_text, day_number
from nessie_cli.iceberg.row_diff.values import json_values

MICROS = 10**6


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (pa.date32(), [0, 2932896, 2932897], ["1970-01-01", "9999-12-31", "+10000-01-01"]),
        (pa.date32(), [-719163, -719529, -(10**6)], ["0000-12-31", "-0001-12-31", "-0768-02-04"]),
        (pa.date32(), [2**31 - 1, None], ["+5881580-07-11", None]),
        (pa.timestamp("us"), [2**62, None], ["+148108-07-06T14:00:27.387904", None]),
        (pa.timestamp("us"), [-1], ["1969-12-31T23:59:59.999999"]),
        (pa.timestamp("us"), [253402300800 * MICROS], ["+10000-01-01T00:00:00.000000"]),
        (pa.timestamp("us", "UTC"), [2**62], ["+148108-07-06T14:00:27.387904+00:00"]),
        (pa.timestamp("ns"), [1], ["1970-01-01T00:00:00.000000001"]),
        (pa.time64("us"), [0, 3723 * MICROS, None], ["00:00:00", "01:02:03", None]),
        (pa.time64("us"), [-1, 24 * 3600 * MICROS, 2**62], ["-1", "86400000000", f"{2**62}"]),
    ],
)
def test_dates_and_times_beyond_those_of_python(
    type_: pa.DataType, values: list[Any], expected: list[str | None]
) -> None:
    numbers = pa.array(values, pa.int32() if pa.types.is_date(type_) else pa.int64())
    array = numbers.cast(type_)
    assert json_values(array) == expected
    lists = pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
    assert json_values(lists) == [expected]


def test_a_text_that_is_not_utf_8() -> None:
    offsets = pa.array([0, 2, 4, 4], pa.int64()).buffers()[1]
    bytes_ = pa.py_buffer(b"\xff\xfe\xc3\xa9")
    array = pa.Array.from_buffers(pa.large_string(), 3, [None, offsets, bytes_])
    assert json_values(array) == [r"\xff\xfe", "é", ""]


@given(st.dates())
def test_dates_are_those_of_python(day: date) -> None:
    assert date_text((day - date(1970, 1, 1)).days) == day.isoformat()
    assert day_number(day.year, day.month, day.day) == (day - date(1970, 1, 1)).days


@given(st.datetimes())
def test_timestamps_are_those_of_python(instant: datetime) -> None:
    expected = instant.isoformat(timespec="microseconds")
    units = (instant - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    array = pa.array([units], pa.int64()).cast(pa.timestamp("us"))
    assert json_values(array) == [expected]
