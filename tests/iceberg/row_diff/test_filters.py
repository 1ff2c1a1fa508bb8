"""Filters of rows: exact comparisons for each type, with the meaning of SQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.row_diff.filters import matching, row_filter
from nessie_cli.iceberg.row_diff.schemas import arrow_type

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "==": eq,
    "!=": ne,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def batch_of(type_: IcebergType, values: Sequence[Any], name: str) -> pa.RecordBatch:
    array = pa.array(values, arrow_type(type_)) if not isinstance(values, pa.Array) else values
    return pa.record_batch([array], [name])


def matches(type_: IcebergType, values: Sequence[Any], text: str, name: str = "x") -> list[int]:
    """The numbers of the values that match."""
    schema = Schema(NestedField(1, name, type_))
    return matching(batch_of(type_, values, name), row_filter(text, schema))


# -- exact comparison -----------------------------------------------------------------------------

INTS = [-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1]
LONGS = [-(2**63), *INTS, 2**53 + 1, 2**63 - 1]
DECIMALS = [Decimal(each) for each in ("-9999999.99", "-1.50", "0.00", "1.49", "1.50", "1.51")]
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-4, 4, places=3).map(lambda number: f"{number:f}"),
    st.sampled_from(["1.5", "-1.5", "1.505", "15e-1", "1e400", "-1e-400", "9223372036854775807.5"]),
)


@pytest.mark.parametrize(
    ("type_", "values"),
    [(IntegerType(), INTS), (LongType(), LONGS), (DecimalType(9, 2), DECIMALS)],
)
@given(literal=NUMBERS, operator=st.sampled_from(list(OPERATORS)))
def test_numbers_are_compared_exactly(
    type_: IcebergType, values: list[Any], literal: str, operator: str
) -> None:
    exact, compare = Fraction(Decimal(literal)), OPERATORS[operator]
    expected = [n for n, value in enumerate(values) if compare(Fraction(value), exact)]
    assert matches(type_, [*values, None], f"x {operator} {literal}") == expected
    assert matches(type_, values, f"x {operator} '{literal}'") == expected
    mirrored = [n for n, value in enumerate(values) if compare(exact, Fraction(value))]
    assert matches(type_, values, f"{literal} {operator} x") == mirrored
    if operator == "=":
        assert matches(type_, values, f"x in ({literal}, 7)") == expected
        assert matches(type_, values, f"x between {literal} and {literal}") == expected


def test_a_number_is_rounded_for_a_column_of_binary_floating_point() -> None:
    assert matches(FloatType(), [0.1, 0.2], "x = 0.1") == [0]
    assert matches(FloatType(), [0.1, 0.2], "x > 0.1") == [1]
    assert matches(DoubleType(), [0.1, 0.2, None], "x in (0.1, 5)") == [0]
    assert matches(DoubleType(), [1.0, math.inf, -math.inf], "x < 'Infinity'") == [0, 2]
    assert matches(DoubleType(), [0.0, -0.0], "x = 0") == [0, 1]
    assert matches(DoubleType(), [0.0, -0.0], "x in (0)") == [0, 1]


def test_nan_is_neither_greater_nor_less() -> None:
    values = [math.nan, 1.0, None]
    assert matches(DoubleType(), values, "x is nan") == [0]
    assert matches(DoubleType(), values, "x is not nan") == [1, 2]
    assert matches(DoubleType(), values, "x > 0 or x <= 0") == [1]


MIDNIGHT = datetime(2026, 1, 31)


@pytest.mark.parametrize(
    ("type_", "values", "text", "expected"),
    [
        (DateType(), [date(2026, 1, 30), date(2026, 1, 31)], "x < '2026-01-31'", [0]),
        (DateType(), [date(1, 1, 1), date(9999, 12, 31)], "x > '-0001-12-31'", [0, 1]),
        (DateType(), [date(1, 1, 1), date(9999, 12, 31)], "x < '+10000-01-01'", [0, 1]),
        (DateType(), [date(2024, 2, 29)], "x in ('2024-02-29', '2024-03-01')", [0]),
        (TimeType(), [time(1, 2), time(1, 2, 3, 4)], "x <= '01:02'", [0]),
        (TimeType(), [time(1, 2, 3, 4)], "x = '01:02:03.000004'", [0]),
        (TimeType(), [time(1, 2, 3, 4)], "x > '01:02:03.0000039'", [0]),
        (TimestampType(), [MIDNIGHT], "x = '2026-01-31'", [0]),
        (TimestampType(), [MIDNIGHT], "x = '2026-01-31 00:00:00.0000001'", []),
        (TimestampType(), [MIDNIGHT], "x < '2026-01-31 00:00:00.0000001'", [0]),
        (TimestampType(), [MIDNIGHT], "x < '999999-01-01'", [0]),
        (TimestampType(), [MIDNIGHT], "x > '-999999-01-01'", [0]),
        (TimestampNanoType(), [MIDNIGHT], "x < '2026-01-31T00:00:00.000000001'", [0]),
        (TimestampNanoType(), [MIDNIGHT], "x in ('2026-01-31T00:00:00.000000000')", [0]),
        (
            TimestamptzType(),
            [datetime(2026, 1, 31, 1, tzinfo=UTC)],
            "x = '2026-01-31T00:30:00-00:30'",
            [0],
        ),
        (
            TimestamptzNanoType(),
            [datetime(2026, 1, 31, tzinfo=UTC)],
            "x = '2026-01-31T00:00:00Z'",
            [0],
        ),
    ],
)
def test_dates_and_times(
    type_: IcebergType, values: list[Any], text: str, expected: list[int]
) -> None:
    assert matches(type_, [*values, None], text) == expected


def test_uuids() -> None:
    values = pa.array([(n).to_bytes(16) for n in range(3)], pa.binary(16)).cast(pa.uuid())
    one = "00000000-0000-0000-0000-000000000001"
    assert matches(UUIDType(), values, f"x = '{one}'") == [1]
    assert matches(UUIDType(), values, f"x != '{one}'") == [0, 2]
    assert matches(UUIDType(), values, f"x > '{one}'") == [2]
    assert matches(UUIDType(), values, f"x in ('{one}')") == [1]
    assert matches(UUIDType(), values, "x is null") == []


def test_booleans() -> None:
    assert matches(BooleanType(), [True, False, None], "x = true") == [0]
    assert matches(BooleanType(), [True, False, None], "x != TRUE") == [1]
    assert matches(BooleanType(), [True, False, None], "x = 'false'") == [1]


# -- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a_", ["ab", "a%"]),
        ("a%", ["a", "ab", "a%", "a\nbc"]),
        ("%b%", ["ab", "_b", "a\nbc", "éb"]),
        (r"a\%", ["a%"]),
        (r"\_b", ["_b"]),
        ("a_bc", ["a\nbc"]),
        ("_b", ["ab", "_b", "éb"]),
        ("a", ["a"]),
        ("", []),
    ],
)
def test_patterns(pattern: str, expected: list[str]) -> None:
    texts = ["a", "ab", "a%", "_b", "a\nbc", "éb", None]
    chosen = [texts[n] for n in matches(StringType(), texts, f"x like '{pattern}'")]
    assert chosen == expected
    others = [text for text in texts if text not in (*expected, None)]
    assert [texts[n] for n in matches(StringType(), texts, f"x not like '{pattern}'")] == others


def test_quotes_and_line_breaks_in_texts() -> None:
    assert matches(StringType(), ["o'x", "a\nb", ""], "x = 'o''x'") == [0]
    assert matches(StringType(), ["o'x", "a\nb", ""], "x = 'a\nb'") == [1]
    assert matches(StringType(), ["o'x", "a\nb", ""], "x = ''") == [2]


# -- null -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x != 1", [1]),
        ("not x = 1", [1]),
        ("not not x = 1", [0]),
        ("x not in (1)", [1]),
        ("x not in (1.5)", [0, 1]),
        ("x not between 1 and 1", [1]),
        ("x is null or x = 2", [1, 2]),
        ("not (x is null or x = 2)", [0]),
        ("x is not null and true", [0, 1]),
        ("x < 1e40", [0, 1]),
        ("false", []),
        ("x = 1 or x = 2 and x = 3", [0]),
        ("(x = 1 or x = 2) and x = 3", []),
    ],
)
def test_a_comparison_with_null_is_unknown(text: str, expected: list[int]) -> None:
    assert matches(LongType(), [1, 2, None], text) == expected


# -- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.y", "x.y = 1"),
        ("x.y", '"x.y" = 1'),
        ("a b", '"a b" = 1'),
        ('a"b', '"a""b" = 1'),
        ("ü", "ü = 1"),
        ("NULL", "NULL = 1"),
        ("not", '"not" = 1'),
        ("true", "true = 1"),
        ("in", "in in (1)"),
    ],
)
def test_names_of_columns(name: str, text: str) -> None:
    assert matches(LongType(), [0, 1], text, name) == [1]


def test_fields_inside_a_struct() -> None:
    inner = NestedField(3, "b.c", IntegerType())
    struct = StructType(NestedField(2, "a", LongType()), inner)
    values = [{"a": 1, "b.c": 5}, {"a": None, "b.c": 6}, None]
    assert matches(struct, values, "x.a = 1") == [0]
    assert matches(struct, values, "x.a is null") == [1, 2]
    assert matches(struct, values, "x.b.c > 5") == [1]
    assert matches(struct, values, 'x."b.c" > 5') == [1]
    assert matches(struct, values, "x is null") == [2]
    with pytest.raises(InvalidInput, match=r"there is no column 'x\.z'"):
        matches(struct, values, "x.z = 1")


# -- errors ---------------------------------------------------------------------------------------

LIST = ListType(2, IntegerType(), element_required=False)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (LongType(), "x = 'a'"),
        (LongType(), "x = true"),
        (DoubleType(), "x = 1e400"),
        (DoubleType(), "x = 'NaN'"),
        (FloatType(), "x = 1e39"),
        (StringType(), "x = 1"),
        (BooleanType(), "x = 1"),
        (UUIDType(), "x = 'abc'"),
        (BinaryType(), "x = '00'"),
        (FixedType(1), "x in ('0')"),
        (LIST, "x = 1"),
        (DateType(), "x = '2026-02-30'"),
        (DateType(), "x = 5"),
        (DateType(), "x = '2026-01-01T00:00:00'"),
        (TimeType(), "x = '24:00'"),
        (TimestampType(), "x = '2026-01-01T00:00:00+00:00'"),
        (TimestampType(), "x = 99999999999999999999999"),
        (TimestamptzType(), "x = '2026-01-01T00:00:00'"),
    ],
)
def test_a_value_that_does_not_fit(type_: IcebergType, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"column 'x' of type .* cannot be compared with"):
        matches(type_, [], text)


def test_columns_that_can_only_be_null() -> None:
    for type_ in (BinaryType(), LIST, FixedType(1), UnknownType()):
        assert matches(type_, [None], "x is null") == [0]
        assert matches(type_, [None], "x is not null") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "error at column 1"),
        ("x", "error at column 2"),
        ("x =", "error at column 4"),
        ("x = 1 or", "error at column 9"),
        ("x = 1)", "error at column 6"),
        ("(x = 1", "error at column 7"),
        ("x = 0x1", "error at column 5"),
        ("x = null", "error at column 5"),
        ("x in ()", "error at column 7"),
        ("x = x", "error at column 5"),
        ("x = 1; drop", "error at column 6"),
        ("x = 'a", "error at column 5"),
        ("x = 1e99999999999999999999", "error at column 5"),
        ("x is true", "error at column 6"),
        ("x between 1 or 2", "error at column 13"),
        ("x is nan", "column 'x' of type long has no NaN"),
        ("x like 'a'", "column 'x' of type long is not a text"),
        ("x = '\udcff'", "it is not UTF-8"),
        ("(" * 500 + "x = 1" + ")" * 500, "it has more than 100 nested parentheses"),
    ],
)
def test_a_text_that_is_not_a_filter(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        matches(LongType(), [], text)
    assert raised.value.message.startswith(f"{text!r} is not a filter: {reason}. Hint: ")


def test_long_filters() -> None:
    assert matches(LongType(), [1, 5000], " or ".join(f"x = {n}" for n in range(3000))) == [0]
    numbers = ", ".join(map(str, range(5000)))
    assert matches(LongType(), [1, 5000], f"x in ({numbers})") == [0]
    assert matches(LongType(), [1, 2], "not " * 2001 + "x = 1") == [1]
