"""The lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from nessie_cli.inspection.text import visible
from nessie_cli.render.spans import Cell, Column, Line, Row, Span, text_of, trimmed
from nessie_cli.render.text import cells, shorten_end, wrap

GAP = 2
_LEAST = {"cut": 12, "fold": 16}
"""The smallest widths of columns that can be read well."""
_NARROW = {"cut": 4, "fold": 8}
"""The smallest widths on a narrow terminal, without spare columns."""


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    width: int,
    has_heading: bool,
    time: Callable[[datetime], str],
) -> Iterator[Line]:
    """Returns the lines of a table of at most `width` columns. `time` spells a time."""
    table = [
        [_span(cell, column, time) for cell, column in zip(row, columns, strict=True)]
        for row in rows
    ]
    natural = [
        max(cells(column.heading), *(cells(row[number].text) for row in table))
        for number, column in enumerate(columns)
    ]
    widths = _widths(columns, natural, width)
    if has_heading:
        table.insert(0, [Span(column.heading, "heading") for column in columns])
    for row in table:
        yield from _row_lines(columns, row, widths)


def _span(cell: Cell, column: Column, time: Callable[[datetime], str]) -> Span:
    style = cell.style if isinstance(cell, Span) else column.style
    return Span(visible(text_of(cell, time)), style)


def _row_lines(
    columns: Sequence[Column], row: Sequence[Span], widths: Mapping[int, int]
) -> Iterator[Line]:
    """Returns the lines of a row: several if a cell is wrapped."""
    texts = {
        number: wrap(row[number].text, width)
        if columns[number].room == "fold"
        else [shorten_end(row[number].text, width)]
        for number, width in widths.items()
    }
    for height in range(max(map(len, texts.values()))):
        line: list[Span] = []
        for number, width in widths.items():
            text = texts[number][height] if height < len(texts[number]) else ""
            padding = " " * (width - cells(text))
            before, after = (padding, "") if columns[number].right else ("", padding)
            line += [Span(before), row[number]._replace(text=text), Span(after + " " * GAP)]
        yield trimmed(line)


def _widths(columns: Sequence[Column], natural: Sequence[int], width: int) -> dict[int, int]:
    """Returns the width of each visible column.

    Spare columns are left out first, then those that may be cut shrink, then those that fold.
    """

    def shrunk(number: int, least: Mapping[str, int]) -> int:
        return min(natural[number], least.get(columns[number].room, natural[number]))

    numbers = list(range(len(columns)))
    for number in reversed(range(len(columns))):
        too_wide = _total(shrunk(i, _LEAST) for i in numbers) > width
        if columns[number].room == "spare" and too_wide:
            numbers.remove(number)
    widths = {
        number: max(shrunk(number, _LEAST), min(natural[number], width)) for number in numbers
    }
    over = _total(widths.values()) - width
    for least, room in ((_LEAST, "cut"), (_LEAST, "fold"), (_NARROW, "cut"), (_NARROW, "fold")):
        flexible = [number for number in numbers if columns[number].room == room]
        # From the widest column on: none gets narrower than another one that stays wider.
        while over > 0 and (
            wide := [number for number in flexible if widths[number] > shrunk(number, least)]
        ):
            widths[max(wide, key=lambda number: widths[number])] -= 1
            over -= 1
    return widths


def _total(widths: Iterable[int]) -> int:
    columns = list(widths)
    return sum(columns) + GAP * (len(columns) - 1)
