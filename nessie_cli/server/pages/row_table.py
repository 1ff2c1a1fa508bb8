"""The changed rows of a table as cells of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.inspection.cells import cell_text, differ

if TYPE_CHECKING:
    from nessie_cli.iceberg.row_diff.difference import DifferenceSummary
    from nessie_cli.inspection.rows import ChangedRow

MOST_ROWS = 100
"""The most changed rows of a page."""
MOST_COLUMNS = 40
"""The most columns of a page."""
_PLACE = "the process that reads rows"
_WORDS = {"INSERT": "inserted", "DELETE": "deleted", "UPDATE": "updated"}


class Cell(NamedTuple):
    """A cell: its texts before and after; None if the row is absent then.

    `is_changed` is whether the value differs between two states of the row.
    """

    before: str | None
    after: str | None
    is_changed: bool


class RowLine(NamedTuple):
    """A changed row: `inserted`, `deleted` or `updated`, and its cells."""

    word: str
    cells: Sequence[Cell]


class RowTable(NamedTuple):
    """The changed rows of a table, as far as a page shows them.

    `left_out` is the number of columns that are not shown, `is_cut` whether there are more rows.
    """

    summary: DifferenceSummary
    columns: Sequence[str]
    left_out: int
    lines: Sequence[RowLine]
    is_cut: bool
    ambiguous_keys: int


def row_table(data: bytes) -> RowTable:
    """Returns the rows in the answer of a process (`wire.rows`). Raises the error in it."""
    # Loading these modules takes up to a second.
    from nessie_cli.iceberg.row_diff.answer import RowAnswer
    from nessie_cli.inspection.rows import changed_rows

    answer = RowAnswer(data, _PLACE)
    columns = [field.name for field in answer.summary.schema.fields]
    # The order is that of the compared columns.
    lines = [_line(row) for row in islice(changed_rows(answer, nullcontext()), MOST_ROWS + 1)]
    return RowTable(
        answer.summary,
        columns[:MOST_COLUMNS],
        max(len(columns) - MOST_COLUMNS, 0),
        lines[:MOST_ROWS],
        len(lines) > MOST_ROWS,
        answer.ambiguous_keys,
    )


def _line(row: ChangedRow) -> RowLine:
    return RowLine(_WORDS[row.kind], list(islice(_cells(row), MOST_COLUMNS)))


def _cells(row: ChangedRow) -> Iterator[Cell]:
    if row.before is None or row.after is None:
        for value in row.before or row.after or ():
            text = cell_text(value)
            yield Cell(text, None, False) if row.after is None else Cell(None, text, False)
        return
    for before, after in zip(row.before, row.after, strict=True):
        yield Cell(cell_text(before), cell_text(after), differ(before, after))
