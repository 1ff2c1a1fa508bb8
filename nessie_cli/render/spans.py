"""What the modules of this room make and the terminal writes: lines of labelled spans, rows of cells, and the columns of tables."""

# No postponed annotations here: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Sequence
from typing import Literal, NamedTuple

from nessie_cli.render.text import visible

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
"""How each style of a span looks. Styles are named for what the text means, so that colours are chosen in one place."""
LANES = 6
"""How many `lane…` styles there are."""


class Span(NamedTuple):
    """A piece of a line: its text, and what it is (a name of `STYLES`, or nothing)."""

    text: str
    style: str = ""


Line = Sequence[Span]
Spans = list[Span]
Row = Sequence[Span | str]
"""The cells of a table; a text takes the style of its column."""


Room = Literal["keep", "cut", "fold", "spare"]


class Column(NamedTuple):
    """A column of a table, and what becomes of it where the terminal is too narrow.

    `keep`: as wide as its cells; `cut`: loses its end first; `fold`: goes on below, for what must not be cut, such as keys; `spare`: is left out,
    the rightmost first.
    """

    heading: str
    style: str = ""
    room: Room = "keep"
    right: bool = False


class Drawn(NamedTuple):
    """One commit of a graph: lines above it, the prefix of its own line, lines below it, the prefix of further text lines."""

    above: list[Spans]
    own: Spans
    below: list[Spans]
    beside: Spans


def trimmed(line: Line) -> Line:
    """Without the spaces at its end."""
    spans = list(line)
    while spans and not spans[-1].text.rstrip(" "):
        spans.pop()
    return [*spans[:-1], spans[-1]._replace(text=spans[-1].text.rstrip(" "))] if spans else []


def plain(line: Line) -> str:
    """The text of a line, without styles, visible."""
    return visible("".join(span.text for span in line))
