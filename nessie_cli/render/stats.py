"""What `nessie stats` tells, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from nessie_cli.render.spans import Column, Row
from nessie_cli.render.terminal import Terminal

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")
_STEP = 1000


class AuthorRow(NamedTuple):
    """An author."""

    author: str
    commits: int
    first: datetime | None
    last: datetime | None


class DayRow(NamedTuple):
    """A day; `tables` and `contents` are how many there were in the end."""

    day: str
    commits: int
    created: int
    updated: int
    deleted: int
    tables: int
    contents: int


class KeyRow(NamedTuple):
    """A key that has changed."""

    key: str
    type: str
    commits: int
    created: int
    updated: int
    deleted: int
    last: datetime | None


class SizeRow(NamedTuple):
    """A table; None for what its snapshot does not tell."""

    key: str
    rows: int | None
    files: int | None
    bytes: int | None


class Shown(NamedTuple):
    """What is shown."""

    authors: Sequence[AuthorRow]
    days: Sequence[DayRow]
    keys: Sequence[KeyRow]
    sizes: Sequence[SizeRow]


def _number(heading: str) -> Column:
    return Column(heading, right=True)


_AUTHOR = (Column("AUTHOR", "author", "fold"), _number("COMMITS"), Column("FIRST", "time", "spare"), Column("LAST", "time", "spare"))
_CHURN = (_number("CREATED"), _number("UPDATED"), _number("DELETED"))
_DAY = (Column("DAY"), _number("COMMITS"), *_CHURN, _number("TABLES"), _number("CONTENTS"))
_KEY = (Column("KEY", "key", "fold"), Column("TYPE", room="spare"), _number("COMMITS"), *_CHURN, Column("LAST", "time", "spare"))
_SIZE = (Column("KEY", "key", "fold"), _number("ROWS"), _number("FILES"), _number("SIZE"))


def print_stats(shown: Shown, terminal: Terminal) -> None:
    """Authors, days, the most changed keys, the largest tables; out of a terminal the first cell of a line says which of them it is about."""
    out = terminal

    def times(*found: datetime | None) -> Iterator[str]:
        return map(out.time, found)

    def numbers(*found: int | None) -> Iterator[str]:
        return (_counted(number, out) for number in found)

    tables: Iterable[tuple[str, Sequence[Column], Iterable[Row]]] = (
        ("author", _AUTHOR, [(out.person(row.author), *numbers(row.commits), *times(row.first, row.last)) for row in shown.authors]),
        ("day", _DAY, [(row.day, *numbers(*row[1:])) for row in shown.days]),
        ("key", _KEY, [(row.key, row.type, *numbers(*row[2:6]), *times(row.last)) for row in shown.keys]),
        ("table", _SIZE, [(row.key, *numbers(row.rows, row.files), _size(row.bytes, out)) for row in shown.sizes]),
    )
    titles = {"author": "Authors", "day": "Days", "key": "Most changed keys", "table": "Largest tables"}
    out.print_tables((titles[name] if out.is_terminal else name, columns, rows) for name, columns, rows in tables)


def _counted(number: int | None, terminal: Terminal) -> str:
    """Digits in groups for a person, as they are for a program; an empty text where nobody knows."""
    return "" if number is None else f"{number:,}" if terminal.is_terminal else str(number)


def _size(number: int | None, terminal: Terminal) -> str:
    return "" if number is None else human_size(number) if terminal.is_terminal else str(number)


def human_size(number: int) -> str:
    """A number of bytes for a person.

    >>> human_size(999), human_size(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    value, unit = float(number), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value /= _STEP
        unit += 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{number} {_UNITS[0]}"
