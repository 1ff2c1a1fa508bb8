"""Dates as numbers of days since 1970-01-01, also beyond the years of Python's `date`.

https://iceberg.apache.org/spec/#json-single-value-serialization
"""

from __future__ import annotations

from datetime import date, timedelta

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years, or days, the calendar repeats."""
_START = date(2000, 1, 1)


def day_number(year: int, month: int, day: int) -> int:
    """Returns the number of a day. Raises `ValueError` if the calendar lacks it."""
    cycles, rest = divmod(year - _START.year, _CYCLE_YEARS)
    inside = date(_START.year + rest, month, day)
    return (inside - date(1970, 1, 1)).days + cycles * _CYCLE_DAYS


def date_text(days: int) -> str:
    """Returns a day in ISO 8601. A year of more than four digits has a sign."""
    cycles, rest = divmod(days - (_START - date(1970, 1, 1)).days, _CYCLE_DAYS)
    inside = _START + timedelta(days=rest)
    year = inside.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > date.max.year else ""
    return f"{sign}{abs(year):04}-{inside:%m-%d}"


def timestamp_text(units: int, second: int) -> str:
    """Returns an instant in ISO 8601. `second` is the number of units of a second."""
    seconds, fraction = divmod(units, second)
    days, seconds = divmod(seconds, 86_400)
    minutes, seconds = divmod(seconds, 60)
    digits = len(str(second)) - 1
    time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{fraction:0{digits}}"
    return f"{date_text(days)}T{time}"
