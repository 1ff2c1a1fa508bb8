"""Dates as numbers of days since 1970-01-01, also beyond the years of Python's `date`.

https://iceberg.apache.org/spec/#json-single-value-serialization
"""

from __future__ import annotations

from datetime import date

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years, or days, the calendar repeats."""
_START = date(2000, 1, 1)


def day_number(year: int, month: int, day: int) -> int:
    """Returns the number of a day. Raises `ValueError` if the calendar lacks it."""
    cycles, rest = divmod(year - _START.year, _CYCLE_YEARS)
    inside = date(_START.year + rest, month, day)
    return (inside - date(1970, 1, 1)).days + cycles * _CYCLE_DAYS
