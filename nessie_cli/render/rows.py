"""Changed rows as a table for people, as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nessie_cli.inspection.cells import differ
from nessie_cli.inspection.text import visible
from nessie_cli.render.spans import Column, Row, Span, Table
from nessie_cli.render.terminal import Terminal, json_text
from nessie_cli.render.text import fit_alike, human_size

if TYPE_CHECKING:
    from nessie_cli.inspection.rows import ChangedRow, ChangedTable

CHANGE_TYPE = "_change_type"
_MARKS = {"INSERT": ("+", "created"), "DELETE": ("-", "deleted"), "UPDATE": ("~", "updated")}
_ARROW = " -> "
_CELL = 24
"""The width of each value of an updated cell on a terminal."""
_TOTALS = (
    Column("KEY", "key", "fold"),
    Column("ADDED ROWS", "created", right=True),
    Column("FILES", right=True),
    Column("REMOVED ROWS", "deleted", right=True),
    Column("FILES", right=True),
    Column("DELETES", right=True, room="spare"),
    Column("TO READ", right=True),
)


def row_table(
    table: ChangedTable, rows: Iterable[ChangedRow], terminal: Terminal
) -> tuple[str, Sequence[Column], Iterator[Row]]:
    """Returns a title, the columns and the rows of a table, with changed cells marked."""
    numbers = _numeric_columns(table)
    columns = [Column("")] + [
        Column(name, room="cut", right=name in numbers) for name in table.columns
    ]
    title = f"{table.change.kind.word} {table.change.keys}"
    return title, columns, (_cells(row, terminal) for row in rows)


def _numeric_columns(table: ChangedTable) -> set[str]:
    numeric = ("int", "long", "float", "double", "decimal")
    fields = table.summary.schema.fields
    return {field.name for field in fields if str(field.field_type).startswith(numeric)}


def _cells(row: ChangedRow, terminal: Terminal) -> Row:
    mark, style = _MARKS[row.kind]
    if row.before is None or row.after is None:
        values = row.after or row.before or ()
        return [Span(mark, style), *(Span(cell_text(value), style) for value in values)]
    cells = [
        Span(_changed(old, new, terminal), style) if differ(old, new) else Span(cell_text(new))
        for old, new in zip(row.before, row.after, strict=True)
    ]
    return [Span(mark, style), *cells]


def _changed(old: Any, new: Any, terminal: Terminal) -> str:
    texts = [cell_text(old), cell_text(new)]
    return _ARROW.join(fit_alike(texts, _CELL) if terminal.is_terminal else texts)


def cell_text(value: Any) -> str:
    """Returns the text of a value; null is `null`, and a nested value is JSON."""
    return value if isinstance(value, str) else json_text(value)


def totals_table(tables: Iterable[ChangedTable]) -> Table:
    """Returns a row for each table: the rows and files that were added and removed."""
    rows = (
        (
            table.change.keys,
            f"{table.summary.added.rows:,}",
            f"{table.summary.added.files:,}",
            f"{table.summary.removed.rows:,}",
            f"{table.summary.removed.files:,}",
            f"{table.summary.delete_files:,}",
            human_size(table.summary.bytes),
        )
        for table in tables
    )
    return Table(_TOTALS, rows)


def markdown_texts(table: ChangedTable, rows: Iterable[ChangedRow]) -> Iterator[str]:
    """Yields the lines of a table in Markdown, with changed cells in bold. None without rows."""
    is_first = True
    for row in rows:
        if is_first:
            heading = ["", *map(_markdown, table.columns)]
            yield f"**{_markdown(table.change.keys)}**\n\n"
            yield _markdown_line(heading)
            yield _markdown_line(["---"] * len(heading))
            is_first = False
        yield _markdown_line([_MARKS[row.kind][0], *_markdown_cells(row)])
    if not is_first:
        yield "\n"


def _markdown_cells(row: ChangedRow) -> Iterator[str]:
    if row.before is None or row.after is None:
        yield from (_markdown(cell_text(value)) for value in row.after or row.before or ())
        return
    for values in zip(row.before, row.after, strict=True):
        old, new = (_markdown(cell_text(value)) for value in values)
        yield f"**{old}{_ARROW}{new}**" if differ(*values) else new


def _markdown(text: str) -> str:
    """Returns a text whose characters have no meaning in a cell."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>|~#" else char for char in visible(text))


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def csv_texts(table: ChangedTable, rows: Iterable[ChangedRow]) -> Iterator[str]:
    """Yields the lines of a CSV file. An update has two lines.

    Null is an empty cell, and an empty text is a cell with quotes.
    """
    yield csv_line([CHANGE_TYPE, *table.columns])
    for kind, *states in rows:
        kinds = ("UPDATE_BEFORE", "UPDATE_AFTER") if None not in states else (kind, kind)
        for name, values in zip(kinds, states, strict=True):
            if values is not None:
                yield csv_line([name, *(None if v is None else cell_text(v) for v in values)])


def csv_line(cells: Sequence[str | None]) -> str:
    """Returns a line of a CSV file."""
    return ",".join(map(_csv_cell, cells)) + "\n"


def _csv_cell(text: str | None) -> str:
    # The module csv leaves a carriage return without quotes, which ends the line for readers.
    if text is None or (text and not any(char in text for char in ',"\r\n')):
        return text or ""
    return '"' + text.replace('"', '""') + '"'
