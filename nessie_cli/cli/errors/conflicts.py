"""The report of a refused commit, merge or transplant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import NessieError, ReferenceConflict
from nessie_cli.render.conflicts import BATCH_SIDES, MERGE_SIDES, ConflictReport
from nessie_cli.render.text import visible

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


def conflict_report(error: ReferenceConflict, app: Invocation) -> ConflictReport:
    """Returns what the diagnostics show of an error."""
    return ConflictReport(
        error.conflicts,
        error.reference,
        error.head,
        error.expected_hash,
        distance=_distance(error, app),
        resolutions=error.resolutions,
        resolver=error.resolver,
        sides=_sides(error),
    )


def _sides(error: ReferenceConflict) -> tuple[str, str, str]:
    if not error.is_merge:
        return BATCH_SIDES
    base, ours, theirs = MERGE_SIDES
    return base, _named(ours, error.reference), _named(theirs, error.source)


def _named(side: str, name: str | None) -> str:
    return f"{side} ({visible(name)})" if name else side


def _distance(error: ReferenceConflict, app: Invocation) -> int | None:
    """Returns the number of commits since the caller started, or None if it is unknown.

    A second failure must not hide the first one.
    """
    if (
        not (error.head and error.expected_hash and app.is_open)
        or error.head == error.expected_hash
    ):
        return None
    try:
        return app.repository().ahead_behind(error.head, error.expected_hash).ahead
    except NessieError:
        return None
