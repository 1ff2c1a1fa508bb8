"""The output of this package's modules: lines of spans, rows of cells, columns of tables."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from nessie_cli.inspection.text import name_of, short_hash, visible

STYLES = {
    "hash": "yellow",
    "key": "bold",
    "name": "green",
    "current": "bold green",
    "tag": "yellow",
    "time": "dim",
    "author": "cyan",
    "label": "dim",
    "created": "green",
    "updated": "yellow",
    "deleted": "red",
    "renamed": "cyan",
    "conflict": "bold red",
    "before": "red",
    "after": "green",
    "command": "cyan",
    "heading": "bold",
    "lane0": "red",
    "lane1": "green",
    "lane2": "yellow",
    "lane3": "blue",
    "lane4": "magenta",
    "lane5": "cyan",
}
"""The look of each style. Styles are named for the meaning of the text."""
LANES = 6
"""The number of `lane…` styles."""


class Span(NamedTuple):
    """A piece of a line: its text, and its style (a name of `STYLES`, or nothing)."""

    text: str
    style: str = ""


Line = Sequence[Span]
Spans = list[Span]


class Hash(NamedTuple):
    """A whole hash in a cell; a terminal shows its first digits."""

    digits: str


class Person(NamedTuple):
    """A person in a cell, as `Eva <eva@example.org>`; a terminal shows the name."""

    text: str


Cell = Span | str | int | Hash | Person | datetime | None
"""A value in a table; all but a span take the style of their column."""
Row = Sequence[Cell]


def text_of(cell: Cell, time: Callable[[datetime], str]) -> str:
    """Returns the short text of a value for people; None is empty. `time` spells a time."""
    if isinstance(cell, str):
        return cell
    match cell:
        case Span(text):
            short = text
        case Hash(digits):
            short = short_hash(digits)
        case Person(text):
            short = name_of(text)
        case datetime():
            short = time(cell)
        case _:
            short = "" if cell is None else str(cell)
    return short


Room = Literal["keep", "cut", "fold", "spare"]


class Column(NamedTuple):
    """A column of a table, and its behavior on a narrow terminal.

    `keep`: as wide as its cells; `cut`: loses its end first; `fold`: wraps, for values that must
    not be cut, such as keys; `spare`: is left out, the rightmost first.
    """

    heading: str
    style: str = ""
    room: Room = "keep"
    right: bool = False


class Table(NamedTuple):
    """The columns of a table, and its rows, which may be read while they are consumed."""

    columns: Sequence[Column]
    rows: Iterable[Row]


class Drawn(NamedTuple):
    """A commit of a graph: lines above, its prefix, lines below, prefix of further lines."""

    above: list[Spans]
    own: Spans
    below: list[Spans]
    further: Spans


def trimmed(line: Line) -> Line:
    """Returns a line without trailing spaces."""
    spans = list(line)
    while spans and not spans[-1].text.rstrip(" "):
        spans.pop()
    return [*spans[:-1], spans[-1]._replace(text=spans[-1].text.rstrip(" "))] if spans else []


def part(line: Line, start: int, end: int) -> Line:
    """Returns the part of a line between two positions of its text."""
    parts = []
    position = 0
    for span in line:
        text = span.text[max(start - position, 0) : max(end - position, 0)]
        position += len(span.text)
        if text:
            parts.append(span._replace(text=text))
    return parts


def plain(line: Line) -> str:
    """Returns the visible text of a line, without styles."""
    return visible("".join(span.text for span in line))
