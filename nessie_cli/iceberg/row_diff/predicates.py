"""Comparisons of columns with values, as in SQL: a comparison with null is null.

Numbers and times are compared exactly, whatever the type of the column: `id > 1.5` is `id >= 2`.
Only a column of binary floating point rounds the value to its own type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from nessie_cli.iceberg.row_diff.dates import day_number
from nessie_cli.iceberg.row_diff.schemas import arrow_type, missing_column

Literal = Decimal | str | bool
Condition = Callable[[pa.RecordBatch], pa.Array]
"""Returns whether each row matches. Null means unknown."""

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_DATE = r"(?P<year>[+-]?\d{4,6})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
_ZONE = r"(?P<zone>Z|(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d))"
_DAY_SECONDS = 86_400
_FARTHEST = 100
"""The values of all types have fewer digits before and after the point."""

_FORMS: dict[type[IcebergType], tuple[re.Pattern[str], int, str]] = {
    DateType: (re.compile(_DATE), 0, "2026-01-31"),
    TimeType: (re.compile(_TIME), 10**6, "12:30:00"),
    TimestampType: (re.compile(f"{_DATE}(?:[T ]{_TIME})?"), 10**6, "2026-01-31T12:30:00"),
    TimestampNanoType: (re.compile(f"{_DATE}(?:[T ]{_TIME})?"), 10**9, "2026-01-31T12:30:00"),
    TimestamptzType: (
        re.compile(f"{_DATE}[T ]{_TIME}{_ZONE}"),
        10**6,
        "2026-01-31T12:30:00+00:00",
    ),
    TimestamptzNanoType: (
        re.compile(f"{_DATE}[T ]{_TIME}{_ZONE}"),
        10**9,
        "2026-01-31T12:30:00+00:00",
    ),
}
"""For each type its form as text, the units of a second, and an example."""
_OPERATORS = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Column(NamedTuple):
    """A column, or a field of a struct column.

    The methods raise `ValueError` for values that do not fit its type.
    """

    path: Sequence[str]
    type: IcebergType

    @property
    def name(self) -> str:
        """The names of the column and of the fields."""
        return ".".join(self.path)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the values in some rows."""
        array = batch.column(self.path[0])
        for name in self.path[1:]:
            names = [field.name for field in array.type]
            array = array.flatten()[names.index(name)]
        return array.storage if isinstance(array, pa.ExtensionArray) else array

    def is_null(self) -> Condition:
        """Returns the condition that there is no value."""
        return lambda batch: pc.is_null(self.values(batch))

    def is_nan(self) -> Condition:
        """Returns the condition that the value is NaN. Null is not NaN."""
        if not isinstance(self.type, FloatType | DoubleType):
            raise self._error("has no NaN")
        return lambda batch: pc.fill_null(pc.is_nan(self.values(batch)), fill_value=False)

    def is_like(self, pattern: str) -> Condition:
        """Returns the condition that a text matches: `%` is any text, `_` any character."""
        if not isinstance(self.type, StringType):
            raise self._error("is not a text")
        return lambda batch: pc.match_like(self.values(batch), pattern)

    def is_in(self, literals: Sequence[Literal]) -> Condition:
        """Returns the condition that the value is equal to any of some values."""
        if isinstance(self.type, FloatType | DoubleType):
            return any_of([self.compared("=", literal) for literal in literals])
        scalars = [
            scalar
            for scalar in (self._scalar("=", literal) for literal in literals)
            if not isinstance(scalar, bool)
        ]
        if not scalars:
            return self._always(value=False)
        value_set = pa.array(scalars, scalars[0].type)
        return lambda batch: _where_valid(values := self.values(batch), pc.is_in(values, value_set))

    def compared(self, operator: str, literal: Literal) -> Condition:
        """Returns the condition of a comparison: `=`, `!=`, `<`, `<=`, `>` or `>=`."""
        if operator == "!=":
            return negation(self.compared("=", literal))
        scalar = self._scalar(operator, literal)
        if isinstance(scalar, bool):
            return self._always(value=scalar)
        return lambda batch: _OPERATORS[operator](self.values(batch), scalar)

    def _always(self, *, value: bool) -> Condition:
        return lambda batch: _where_valid(
            values := self.values(batch), pa.repeat(pa.scalar(value), len(values))
        )

    def _scalar(self, operator: str, literal: Literal) -> pa.Scalar | bool:
        """Returns the value to compare with, or the result if it is the same for all values."""
        type_ = arrow_type(self.type)
        match self.type, literal:
            case BooleanType(), bool():
                return pa.scalar(literal)
            case BooleanType(), "true" | "false":
                return pa.scalar(literal == "true")
            case StringType(), str():
                return pa.scalar(literal, type_)
            case UUIDType(), str() if _is_uuid(literal):
                return pa.scalar(UUID(literal).bytes, type_.storage_type)
            case ((FloatType() | DoubleType()), (Decimal() | str())):
                return self._float(literal, type_)
            case _:
                return self._whole(operator, self._position(literal), type_)

    def _float(self, literal: Decimal | str, type_: pa.DataType) -> pa.Scalar:
        is_infinity = str(literal) in ("Infinity", "-Infinity")
        if not is_infinity and isinstance(literal, str) and not NUMBER.fullmatch(literal):
            raise self._does_not_fit(literal)
        scalar = pa.scalar(float(literal), type_)
        if math.isinf(scalar.as_py()) and not is_infinity:
            raise self._does_not_fit(literal)
        return scalar

    def _position(self, literal: Literal) -> Fraction:
        """Returns where a value is on the line of integers that represent the column's values."""
        form = _FORMS.get(type(self.type))
        if form is not None:
            return self._instant(literal, *form)
        if not isinstance(self.type, IntegerType | LongType | DecimalType):
            raise self._does_not_fit(literal)
        if isinstance(literal, str) and NUMBER.fullmatch(literal):
            literal = Decimal(literal)
        if not isinstance(literal, Decimal):
            raise self._does_not_fit(literal)
        scale = self.type.scale if isinstance(self.type, DecimalType) else 0
        return _fraction(literal) * Fraction(10**scale)

    def _instant(
        self, literal: Literal, form: re.Pattern[str], second: int, example: str
    ) -> Fraction:
        """Returns the units of a date or time. `second` is 0 for dates, whose unit is a day."""
        parts = form.fullmatch(literal) if isinstance(literal, str) else None
        if parts is not None:
            given = {name: part for name, part in parts.groupdict().items() if part}
            with suppress(ValueError):
                return _units(given, second)
        raise ValueError(f"{self._does_not_fit(literal)}; its form is '{example}'")

    def _whole(self, operator: str, position: Fraction, type_: pa.DataType) -> pa.Scalar | bool:
        """Returns the nearest value of the column that gives the same result."""
        if operator == "=" and position.denominator != 1:
            return False
        nearest = math.ceil(position) if operator in ("<", ">=") else math.floor(position)
        lowest, highest = self._range()
        if not lowest <= nearest <= highest:
            return operator != "=" and (nearest > highest) == (operator in ("<", "<="))
        if isinstance(self.type, DecimalType):
            return pa.scalar(Decimal(f"{nearest}e-{self.type.scale}"), type_)
        return pa.scalar(nearest, pa.int32() if self._is_short() else pa.int64()).cast(type_)

    def _range(self) -> tuple[int, int]:
        if isinstance(self.type, DecimalType):
            highest = 10**self.type.precision - 1
            return -highest, highest
        highest = 2**31 - 1 if self._is_short() else 2**63 - 1
        return -highest - 1, highest

    def _is_short(self) -> bool:
        return isinstance(self.type, IntegerType | DateType)

    def _does_not_fit(self, literal: Literal) -> ValueError:
        text = repr(literal) if isinstance(literal, str) else str(literal).lower()
        return self._error(f"cannot be compared with {text}")

    def _error(self, reason: str) -> ValueError:
        return ValueError(f"column '{self.name}' of type {self.type} {reason}")


def column_of(schema: Schema, names: Sequence[str]) -> Column:
    """Returns the column of a name, such as `a`, or of a field inside it, such as `a.b`.

    A column whose own name has a dot is found too. Raises `InvalidInput` if there is none.
    """
    column = _column_in(schema.fields, names)
    if column is None:
        raise missing_column(".".join(names), schema)
    return column


def _column_in(fields: Sequence[NestedField], names: Sequence[str]) -> Column | None:
    by_name = {field.name: field for field in fields}
    for count in range(1, len(names) + 1):
        field = by_name.get(".".join(names[:count]))
        if field is None:
            continue
        if count == len(names):
            return Column([field.name], field.field_type)
        if isinstance(field.field_type, StructType):
            inner = _column_in(field.field_type.fields, names[count:])
            if inner is not None:
                return Column([field.name, *inner.path], inner.type)
    return None


# -- conditions -----------------------------------------------------------------------------------


def constant(*, value: bool) -> Condition:
    """Returns the condition that all rows match, or that none does."""
    return lambda batch: pa.repeat(pa.scalar(value), batch.num_rows)


def negation(condition: Condition) -> Condition:
    """Returns the opposite of a condition. Unknown stays unknown."""
    return lambda batch: pc.invert(condition(batch))


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Returns the condition that all of some conditions match."""
    return lambda batch: reduce(pc.and_kleene, (each(batch) for each in conditions))


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Returns the condition that any of some conditions matches."""
    return lambda batch: reduce(pc.or_kleene, (each(batch) for each in conditions))


def _where_valid(values: pa.Array, result: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), result, None)


# -- values ---------------------------------------------------------------------------------------


def _is_uuid(text: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def _fraction(number: Decimal) -> Fraction:
    """Returns a number, or for one beyond the values of all types, another one beyond them."""
    if number and abs(number.adjusted()) > _FARTHEST:
        exponent = _FARTHEST if number.adjusted() > 0 else -_FARTHEST
        return Fraction(Decimal(f"1e{exponent}").copy_sign(number))
    return Fraction(number)


def _units(given: dict[str, Any], second: int) -> Fraction:
    """Returns the units since the epoch, or since midnight. Raises `ValueError`."""
    days = 0
    if "year" in given:
        days = day_number(int(given["year"]), int(given["month"]), int(given["day"]))
    if not second:
        return Fraction(days)
    hour, minute = (int(given.get(name, 0)) for name in ("hour", "minute"))
    seconds = int(given.get("second", 0))
    hours, minutes = (int(given.get(name, 0)) for name in ("hours", "minutes"))
    if hour > 23 or max(minute, seconds, minutes) > 59 or hours > 18:  # noqa: PLR2004
        raise ValueError("no time of day")
    offset = (hours * 60 + minutes) * (-60 if given.get("sign") == "-" else 60)
    whole = days * _DAY_SECONDS + hour * 3600 + minute * 60 + seconds - offset
    fraction = given.get("fraction", "0")[:_FARTHEST]
    return (whole + Fraction(int(fraction), 10 ** len(fraction))) * second
