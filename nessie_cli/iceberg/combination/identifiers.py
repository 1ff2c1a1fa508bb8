"""Rows that both sides added with the same identifier, which Iceberg does not forbid.

https://iceberg.apache.org/spec/#identifier-field-ids
"""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.iceberg.combination.key_evidence import KeyEvidence
from nessie_cli.iceberg.combination.states import TableFile

MOST_PAIRS = 100_000
"""The most pairs of files that are compared. With more of them, keys may overlap."""


def files_with_same_keys(
    evidence: KeyEvidence, ours: Sequence[TableFile], theirs: Sequence[TableFile]
) -> list[TableFile]:
    """Returns the data files of theirs that may contain identifiers of rows in files of ours."""
    if len(ours) * len(theirs) > MOST_PAIRS:
        return list(theirs)
    return [
        file for file in theirs if not all(evidence.are_disjoint(file, other) for other in ours)
    ]
