"""The report of a refused commit, merge or transplant."""

from __future__ import annotations

from nessie_cli.errors import ReferenceConflict
from nessie_cli.inspection.conflicts import figures
from nessie_cli.render.conflicts import ConflictReport, sides_of_batch, sides_of_merge


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
