"""Tables on a terminal, by rich, which knows wide and combining characters.

This module is imported only if a terminal gets a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from nessie_cli.render.spans import STYLES, Column, Span
from nessie_cli.render.text import visible

GAP = 2
_LEAST = {"cut": 12, "fold": 16}
"""The smallest widths of columns; a narrower terminal wraps the lines."""


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Span | str]],
    *,
    width: int,
    colored: bool,
    heading: bool,
) -> Iterator[str]:
    """Returns the lines of a table of at most `width` columns."""
    cells = [
        [_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows
    ]
    wanted = [
        max(cell_len(column.heading), *(row[i].cell_len for row in cells))
        for i, column in enumerate(columns)
    ]
    widths = _widths(columns, wanted, width)
    table = Table(box=None, show_header=heading, pad_edge=False, padding=(0, GAP, 0, 0))
    for number, column_width in widths.items():
        column = columns[number]
        justify: JustifyMethod = "right" if column.right else "left"
        fold = column.room == "fold"
        table.add_column(
            column.heading,
            width=column_width,
            justify=justify,
            overflow="fold" if fold else "ellipsis",
            no_wrap=not fold,
            header_style="bold",
        )
    for row in cells:
        table.add_row(*(row[number] for number in widths))
    console = Console(
        width=width,
        color_system="standard" if colored else None,
        force_terminal=colored,
        no_color=not colored,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(table)
    return (line.rstrip() for line in capture.get().splitlines())


def _text(cell: Span | str, column: Column) -> Text:
    span = Span(cell, column.style) if isinstance(cell, str) else cell
    return Text(visible(span.text), style=STYLES.get(span.style, ""))


def _widths(columns: Sequence[Column], wanted: Sequence[int], width: int) -> dict[int, int]:
    """Returns the width of each visible column.

    Spare columns shrink first, then those that may be cut, then those that fold.
    """
    least = [
        min(want, _LEAST.get(column.room, want))
        for column, want in zip(columns, wanted, strict=True)
    ]
    shown = list(range(len(columns)))
    for number in reversed(range(len(columns))):
        if columns[number].room == "spare" and _total(least[i] for i in shown) > width:
            shown.remove(number)
    widths = {number: max(least[number], min(wanted[number], width)) for number in shown}
    over = _total(widths.values()) - width
    for room in ("cut", "fold"):
        some = [number for number in shown if columns[number].room == room]
        # From the widest column on: none gets narrower than another one that stays wider.
        while over > 0 and (wide := [number for number in some if widths[number] > least[number]]):
            widths[max(wide, key=lambda number: widths[number])] -= 1
            over -= 1
    return widths


def _total(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + GAP * (len(found) - 1)
