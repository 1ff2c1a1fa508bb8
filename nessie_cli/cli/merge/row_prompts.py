"""Questions about rows and cells in conflict, one by one, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nessie_cli.cli.app.questions import ask
from nessie_cli.errors import Interrupted, ReferenceConflict
from nessie_cli.model import RowDecision, row_key_text
from nessie_cli.render.conflicts import row_conflict_lines

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

_QUESTION = "keep [o]urs, take [t]heirs, [O]urs or [T]heirs for all that follow, [s]kip, [a]bort?"
_ANSWERS = {"o": False, "ours": False, "t": True, "theirs": True, "O": False, "T": True}


def decide_rows(app: Invocation, error: ReferenceConflict) -> Sequence[RowDecision]:
    """Asks about each row or cell in conflict, and returns the answers.

    Returns none without a terminal, or if a question was skipped: then the conflict stays. Raises
    `Interrupted` if the answer is to abort.
    """
    rows = [
        (conflict.key, row)
        for conflict in error.conflicts
        for collision in conflict.collisions
        for row in collision.rows
        if conflict.key is not None
    ]
    if not rows or not sys.stdin.isatty():
        return ()
    decisions: list[RowDecision] = []
    terminal, for_all = app.output.err, ""
    for number, (table, row) in enumerate(rows, 1):
        answer = for_all
        if not answer:
            terminal.print_lines(row_conflict_lines(str(table), row, terminal))
        while answer not in _ANSWERS:
            answer = ask(terminal, f"{number:,} of {len(rows):,}: {_QUESTION}") or "a"
            if answer in ("a", "abort"):
                raise Interrupted("aborted; nothing was changed")
            if answer in ("s", "skip"):
                return ()
        for_all = answer if answer in ("O", "T") else ""
        key = row_key_text(row.key)
        decisions.append(RowDecision(table, key, row.column, _ANSWERS[answer]))
    return decisions
