"""What a merge of rows means for the table: counts, conflicts, and decisions about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.counts import counts_of_files
from nessie_cli.iceberg.row_merge.decision import Decisions, DuplicateKey, Side
from nessie_cli.iceberg.row_merge.merging import RowOutcome
from nessie_cli.model import (
    Collision,
    ContentKey,
    RowConflictKind,
    RowRules,
    TableCombination,
    row_key_text,
)

_KINDS = {
    RowConflictKind.UPDATE_UPDATE: "both sides changed the same row",
    RowConflictKind.INSERT_INSERT: "both sides added a row with this key",
    RowConflictKind.DELETE_UPDATE: "ours deleted a row, and theirs changed it",
    RowConflictKind.UPDATE_DELETE: "theirs deleted a row, and ours changed it",
}


def decisions_of(rules: RowRules, keys: Sequence[ContentKey]) -> Decisions:
    """Returns the decisions about the rows of a table, which has these keys on the two sides."""
    side = None
    if any(key in rules.ours for key in keys):
        side = Side.OURS
    elif any(key in rules.theirs for key in keys):
        side = Side.THEIRS
    single = {
        (decision.key, decision.column): Side.THEIRS if decision.takes_theirs else Side.OURS
        for decision in rules.decisions
        if decision.table in keys
    }
    return Decisions(side, single)


def refusal_of(outcome: RowOutcome, decisions: Decisions) -> Collision | None:
    """Returns why the rows do not merge, or None. Raises `InvalidInput` for an unused decision."""
    if outcome.duplicates:
        return Collision(_duplicates(outcome.duplicates))
    if outcome.conflict_count:
        return Collision(_reason(outcome), rows=tuple(outcome.conflicts))
    if decisions.unused:
        key, column = decisions.unused[0]
        what = f"the row {key}" if column is None else f"the column {column} of the row {key}"
        raise InvalidInput(f"a decision names {what}, which is not in conflict")
    return None


def counts_of(outcome: RowOutcome) -> TableCombination:
    """Returns what a merge of rows adds to ours and removes from it. An update does both."""
    inserted, updated, deleted = outcome.counts
    changes = f"{inserted:,} inserted, {updated:,} updated, {deleted:,} deleted"
    by_files = counts_of_files(outcome.by_files)
    notes = [f"rows were merged by their keys: {changes}"]
    if not outcome.by_files.is_empty:
        files = f"+{by_files.added_files:,} -{by_files.removed_files:,}"
        notes.append(f"files with other keys were merged without reading their rows: {files}")
    return TableCombination(
        len(outcome.combination.written) + by_files.added_files,
        len(outcome.combination.files.removed),
        _sum(by_files.added_rows, inserted + updated),
        _sum(by_files.removed_rows, updated + deleted),
        tuple(notes),
    )


def _sum(of_files: int | None, of_rows: int) -> int | None:
    """Returns a number of rows of both parts. That of files can be unknown."""
    return None if of_files is None else of_files + of_rows


def _reason(outcome: RowOutcome) -> str:
    kinds = Counter(conflict.kind for conflict in outcome.conflicts)
    texts = [text for kind, text in _KINDS.items() if kinds[kind]]
    return f"rows are in conflict ({outcome.conflict_count:,}): {'; '.join(texts)}"


def _duplicates(duplicates: Sequence[DuplicateKey]) -> str:
    names = ", ".join(
        f"{row_key_text(duplicate.key)} on {duplicate.state}" for duplicate in duplicates
    )
    return f"rows cannot be merged, because several rows have the same key: {names}"
