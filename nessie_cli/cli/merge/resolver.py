"""Interactive resolution of conflicts on a terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.cli.errors.conflicts import conflict_report
from nessie_cli.cli.log.deep import deep_changes
from nessie_cli.cli.merge.conflict_file import conflict_text, edited_content
from nessie_cli.cli.merge.decisions import Choice, Decision, Decisions
from nessie_cli.cli.merge.sides import OF_MERGE, Sides
from nessie_cli.cli.staging.editor import edit
from nessie_cli.errors import InvalidInput, NessieError, ReferenceConflict
from nessie_cli.model import Conflict, ConflictType, Content, DiffEntry
from nessie_cli.render.conflicts import conflict_lines
from nessie_cli.render.diffs import change_lines
from nessie_cli.render.spans import Line, Span

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.render.conflicts import ConflictReport


_BY_COMMIT = (ConflictType.NAMESPACE_ABSENT, ConflictType.NOT_A_NAMESPACE)
"""Conflicts of a merge that need a commit on the target first."""


def decide_all(app: Invocation, error: ReferenceConflict, decisions: Decisions) -> bool:
    """Asks about each conflict that is not decided yet. Returns False if one was skipped.

    Raises `InvalidInput` if there is no terminal, or if the answer is to abort.
    """
    undecided = [
        conflict
        for conflict in error.conflicts
        if conflict.key is not None and conflict.key not in decisions.of
    ]
    if not undecided:
        return True
    if not sys.stdin.isatty():
        keys = ", ".join(str(conflict.key) for conflict in undecided)
        raise InvalidInput(
            f"stdin is not a terminal, and these conflicts are not decided: {keys}; decide by"
            f" {decisions.sides.options}"
        )
    resolver = _Resolver(app, conflict_report(error), decisions.sides)
    is_complete = True
    for number, conflict in enumerate(undecided, 1):
        decision = resolver.ask(
            conflict, f"{number} of {len(undecided)}: " if len(undecided) > 1 else ""
        )
        if decision.choice is Choice.SKIP:
            is_complete = False
        elif conflict.key is not None:
            decisions.of[conflict.key] = decision
    return is_complete


class _Resolver:
    """Asks about one conflict after the other."""

    def __init__(self, app: Invocation, report: ConflictReport, sides: Sides) -> None:
        self._app = app
        self._err = app.output.err
        # The answers resolve the conflict, so no command lines are shown.
        self._report = report._replace(resolutions=lambda _: (), resolver="")
        self._resolutions = report.resolutions
        self._sides = sides

    def ask(self, conflict: Conflict, place: str) -> Decision:
        """Shows a conflict and asks until it is decided. `place` is printed before the question."""
        report = self._report._replace(conflicts=[conflict])
        if self._sides is OF_MERGE and conflict.type in _BY_COMMIT:
            # Only the answer in the report resolves it.
            report = report._replace(resolutions=self._resolutions)
        self._err.print_lines(conflict_lines(report, self._err))
        while True:
            self._err.prompt(place + self._sides.question)
            line = sys.stdin.readline()
            answer = line.strip().lower()[:1]
            if not line or answer == "a":
                raise InvalidInput("aborted; nothing was changed")
            if answer == self._sides.ours[0]:
                return Decision(Choice.OURS)
            if answer == self._sides.theirs[0]:
                return Decision(Choice.THEIRS)
            if answer == "s":
                return Decision(Choice.SKIP)
            if answer == "e":
                if content := self._edit(conflict):
                    return Decision(Choice.EDIT, content)
                continue
            self._err.print_lines(self._help())
            if answer == "?":
                self._err.print_lines(self._differences(conflict))

    def _help(self) -> Iterator[Line]:
        for answer, meaning in self._sides.explained():
            yield [Span(f"  {answer:<10} ", "command"), Span(meaning)]

    def _differences(self, conflict: Conflict) -> Iterator[Line]:
        """Returns each side's changes since the base, or those between the sides without a base."""
        states = list(
            zip(
                self._report.sides.titles,
                (conflict.expected, conflict.actual, conflict.proposed),
                strict=True,
            )
        )
        base, ours, theirs = states
        for (old, before), (new, after) in (
            [(base, ours), (base, theirs)] if base[1] else [(ours, theirs)]
        ):
            yield [Span(f"{old} -> {new}", "heading")]
            yield from self._changes(conflict, before, after)

    def _changes(
        self, conflict: Conflict, before: Content | None, after: Content | None
    ) -> Iterator[Line]:
        if conflict.key is None or before == after:
            yield [Span("  no change", "label")]
            return
        for change in deep_changes([DiffEntry(conflict.key, before, after)], self._app):
            yield from change_lines(change, self._err)

    def _edit(self, conflict: Conflict) -> Content | None:
        """Opens the user's editor.

        Prints an error and returns None if the result is not a content.
        """
        if conflict.actual is None and conflict.proposed is None:
            self._err.print_text("there is no content to edit; choose one side")
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "content.json")
            path.write_text(conflict_text(conflict, self._report.sides.titles), encoding="utf-8")
            try:
                edit(path)
                return edited_content(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, NessieError) as error:
                self._err.print_text(f"not accepted: {error}")
        return None
