"""The report of a refused commit, merge or transplant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nessie_cli.errors import NessieError, ReferenceConflict
from nessie_cli.model import Conflict, IcebergTable, IcebergView
from nessie_cli.render.conflicts import ConflictReport, sides_of_batch, sides_of_merge

LARGEST_FILE = 4 * 2**20
"""Metadata files larger than this are not read for a conflict report."""
MOST_COLUMNS = 8
"""If more columns differ, only their number is shown."""
_COLUMN = "column "


def conflict_report(error: ReferenceConflict) -> ConflictReport:
    """Returns the report of an error."""
    return ConflictReport(
        error.conflicts,
        sides_of_merge(error.reference, error.ways_out.source)
        if error.is_merge
        else sides_of_batch(error.reference),
        figures,
        error.ways_out,
    )


def figures(conflict: Conflict) -> Sequence[Mapping[str, str]]:
    """Returns rows, files and columns of the three states, by label.

    Returns nothing if a metadata file is remote, large or unreadable: a report must not wait for a
    network.
    """
    from nessie_cli.iceberg.comparison import figures_of
    from nessie_cli.iceberg.files import Files, scheme_of
    from nessie_cli.iceberg.metadata import parse_document

    files = Files()
    found: list[Mapping[str, str]] = []
    for state in (conflict.expected, conflict.actual, conflict.proposed):
        if not isinstance(state, IcebergTable | IcebergView):
            found.append({})
            continue
        location = state.metadata_location
        try:
            if scheme_of(location) not in ("", "file") or files.size(location) > LARGEST_FILE:
                return ()
            found.append(figures_of(state, parse_document(files.read(location), location)))
        except NessieError:
            return ()
    return _with_few_columns(found)


def _with_few_columns(states: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Replaces the columns of the states by their number if many columns differ."""
    columns = {label for state in states for label in state if label.startswith(_COLUMN)}
    known = [state for state in states if state]
    differing = [label for label in columns if len({state.get(label) for state in known}) > 1]
    if len(differing) <= MOST_COLUMNS:
        return states
    return [
        {label: text for label, text in state.items() if label not in columns}
        | ({"columns": str(len(columns & set(state)))} if state else {})
        for state in states
    ]
