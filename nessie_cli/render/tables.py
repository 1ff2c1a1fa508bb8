"""Tables on a terminal, by rich: columns fit the width, wide and combining characters included. Imported only when a terminal gets a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from nessie_cli.render.terminal import STYLES, Column, Span
from nessie_cli.render.text import visible

GAP = 2
_LEAST = {"keep": 8, "cut": 12, "fold": 16}
"""Below these widths a column is never made narrower; a terminal of that size wraps the line."""


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Span | str]],
    *,
    width: int,
    colored: bool,
    heading: bool,
) -> Iterator[str]:
    """The lines of a table of at most `width` columns."""
    texts = [[_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    widths = _widths(columns, [[cell.cell_len for cell in row] for row in texts], width)
    table = Table(box=None, show_header=heading, pad_edge=False, padding=(0, GAP, 0, 0))
    for column, column_width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if column.right else "left"
        fold = column.room == "fold"
        table.add_column(
            column.heading, width=column_width, justify=justify, overflow="fold" if fold else "ellipsis", no_wrap=not fold, header_style="bold"
        )
    for row in texts:
        table.add_row(*row)
    console = Console(width=width, color_system="standard" if colored else None, force_terminal=colored, no_color=not colored, legacy_windows=False)
    with console.capture() as capture:
        console.print(table)
    return (line.rstrip() for line in capture.get().splitlines())


def _text(cell: Span | str, column: Column) -> Text:
    span = Span(cell, column.style) if isinstance(cell, str) else cell
    return Text(visible(span.text), style=STYLES.get(span.style, ""))


def _widths(columns: Sequence[Column], sizes: Sequence[Sequence[int]], width: int) -> list[int]:
    """As wide as the cells want; what is too much is taken from what may be cut, then from what folds, then from the rest."""
    widths = [max(len(column.heading), *(row[i] for row in sizes)) for i, column in enumerate(columns)]
    over = sum(widths) + GAP * (len(widths) - 1) - width
    for room in ("cut", "fold", "keep"):
        for i in sorted((i for i, column in enumerate(columns) if column.room == room), key=lambda i: -widths[i]):
            taken = max(0, min(over, widths[i] - _LEAST[room]))
            widths[i] -= taken
            over -= taken
    return widths
