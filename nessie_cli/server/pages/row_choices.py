"""The decisions about rows in conflict: their fields in a form, and what a page shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from nessie_cli.server.runtime.row_merge_answer import RowMerge, ShownConflict
from nessie_cli.server.runtime.row_request import RowLimits

ROWS = "rows"
"""The decision about a table to merge its rows."""
MOST_SHOWN = 50
"""The most conflicts about the rows of one table on a page."""
MOST_TABLES = 5
"""The most tables of one merge whose rows are merged on pages."""
_SIDES = {"ours": False, "theirs": True}
_REST, _ROW = "rest.", "row."
"""The beginnings of the names of fields; the digest of the table's decision follows."""


class RowChoice(NamedTuple):
    """A row or cell in conflict, the name of its field, and the chosen side, if any."""

    field: str
    chosen: str
    conflict: ShownConflict


class ShownRows(NamedTuple):
    """The merge of the rows of a table, as a page shows it.

    `bytes` would be read for it, None if the rows cannot be merged, and about `new_bytes` written.
    `reason` says why they are not merged, and `notes` how many rows of ours change if they are.
    `more` conflicts are not shown, at least if it `is_least`. The field named `rest_field` decides
    about all without a decision. `limits` are those of the process that has read the rows.
    """

    bytes: int | None
    new_bytes: int
    reason: str = ""
    notes: Sequence[str] = ()
    choices: Sequence[RowChoice] = ()
    more: int = 0
    is_least: bool = False
    rest_field: str = ""
    rest: str = ""
    outdated: int = 0
    limits: RowLimits | None = None

    @property
    def are_read(self) -> bool:
        """Whether the rows were read: they are in conflict, or merged."""
        return bool(self.choices or self.notes)


def row_choices(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the decisions about rows in a form, by the names of their fields."""
    return {
        name: values[0]
        for name, values in fields.items()
        if name.startswith((_REST, _ROW)) and values[0] in _SIDES
    }


def decisions_of(table: str, given: Mapping[str, str]) -> dict[str, bool]:
    """Returns whether theirs is taken for single rows of a table, by their digests."""
    start = f"{_ROW}{table}."
    return {
        name.removeprefix(start): _SIDES[side]
        for name, side in given.items()
        if name.startswith(start)
    }


def rest_of(table: str, given: Mapping[str, str]) -> bool | None:
    """Returns whether theirs is taken for all other rows of a table; None if neither is."""
    side = given.get(f"{_REST}{table}")
    return None if side is None else _SIDES[side]


def carried(
    given: Mapping[str, str], tables: Collection[str], shown: Collection[str]
) -> dict[str, str]:
    """Returns the decisions about rows of some tables that the page does not show."""
    hidden = set(tables) - set(shown)
    return {name: side for name, side in given.items() if name.split(".")[1] in hidden}


def shown_rows(
    table: str, merge: RowMerge, given: Mapping[str, str], limits: RowLimits | None
) -> ShownRows:
    """Returns the merge of the rows of a table with the decisions about them."""
    choices = [
        RowChoice(name, given.get(name, ""), conflict)
        for conflict in merge.conflicts
        for name in [f"{_ROW}{table}.{conflict.digest}"]
    ]
    rest = f"{_REST}{table}"
    return ShownRows(
        merge.bytes,
        merge.new_bytes,
        merge.reason,
        merge.combination.notes if merge.combination else (),
        choices,
        merge.more,
        merge.is_least,
        rest,
        given.get(rest, ""),
        merge.outdated,
        limits,
    )
