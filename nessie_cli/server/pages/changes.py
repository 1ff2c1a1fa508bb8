"""Changes as pages show them: with their fields, and what their metadata files say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nessie_cli.inspection.changes import ContentChange
from nessie_cli.inspection.fields import Difference, changed_fields, metadata_fields
from nessie_cli.inspection.metadata import DataTotals, data_totals
from nessie_cli.model import IcebergTable
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.table_access import TableAccess

CHANGES = 20
"""The changes of one page."""
MOST_CHANGES = 1_000
"""The most differences between two commits that a page counts and lists."""
MOST_FIELDS, MOST_FIELDS_OF_ONE = 15, 300
"""The most fields, and metadata differences, of a change in a list, and of a single one."""


class ChangeRow(NamedTuple):
    """A changed content with the fields that differ, and the differences of its metadata.

    `left_out` is the number of those that are not shown. `is_table` is whether it has rows.
    """

    change: ContentChange
    fields: Sequence[Difference]
    facts: Sequence[Difference]
    left_out: int
    problems: Sequence[str]
    is_table: bool


class ShownChanges(NamedTuple):
    """The changes of a page, and how much data their tables add and remove."""

    rows: Sequence[ChangeRow]
    totals: DataTotals


def shown_changes(
    call: PageCall, access: TableAccess, changes: Iterable[ContentChange], before: str, after: str
) -> ShownChanges:
    """Returns changes between two commits with their metadata, if the server may read it."""
    listed = list(changes)
    if access.has_warehouses:
        with access.metadata(call.repository) as metadata:
            listed = [metadata.compared(change, before, after) for change in listed]
    most = MOST_FIELDS if len(listed) > 1 else MOST_FIELDS_OF_ONE
    return ShownChanges([_row(change, most) for change in listed], data_totals(listed))


def _row(change: ContentChange, most: int) -> ChangeRow:
    fields, facts = changed_fields(change), metadata_fields(change)
    return ChangeRow(
        change,
        fields[:most],
        facts[:most],
        max(len(fields) - most, 0) + max(len(facts) - most, 0),
        change.metadata.problems if change.metadata else (),
        has_rows(change),
    )


def has_rows(change: ContentChange) -> bool:
    """Returns whether a change is of a table, whose rows can be compared."""
    return any(isinstance(side, IcebergTable) for side in (change.before, change.after))
