"""Interactive resolution of conflicts on a terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.cli.app.questions import ask
from nessie_cli.cli.errors.conflicts import conflict_report
from nessie_cli.cli.log.deep import deep_changes
from nessie_cli.cli.merge.advice import BY_COMMIT
from nessie_cli.cli.merge.conflict_file import conflict_text, edited_content
from nessie_cli.cli.merge.decisions import Choice, Decision, Decisions, question_of
from nessie_cli.cli.merge.sides import OF_BATCH, Sides
from nessie_cli.cli.staging.editor import edit
from nessie_cli.errors import Interrupted, InvalidInput, NessieError, ReferenceConflict, WaysOut
from nessie_cli.model import Conflict, Content, DiffEntry
from nessie_cli.render.conflicts import conflict_lines, effect_lines
from nessie_cli.render.diffs import change_lines
from nessie_cli.render.spans import Line, Span

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.render.conflicts import ConflictReport


_CHOICES = {"ours": Choice.OURS, "theirs": Choice.THEIRS, "skip": Choice.SKIP}


def decide_all(
    app: Invocation,
    error: ReferenceConflict,
    conflicts: Sequence[Conflict],
    decisions: Decisions,
) -> None:
    """Asks about those of an error's conflicts that are not decided yet. Raises as `ask_all`."""
    undecided = [
        conflict
        for conflict in conflicts
        if conflict.key is not None and decisions.about(conflict) is None
    ]
    for conflict, decision in zip(
        undecided, ask_all(app, error, undecided, decisions.sides), strict=True
    ):
        if decision.choice is not Choice.SKIP and conflict.key is not None:
            decisions.answers[question_of(conflict)] = decision


def ask_all(
    app: Invocation, error: ReferenceConflict, undecided: Sequence[Conflict], sides: Sides
) -> list[Decision]:
    """Asks about conflicts, and returns a decision for each.

    The keys that were skipped are then `error.left`. Raises `InvalidInput` if there is no terminal,
    and `Interrupted` if the answer is to abort.
    """
    error.left = ()
    if not undecided:
        return []
    if not sys.stdin.isatty():
        keys = ", ".join(str(conflict.key) for conflict in undecided)
        collisions = [
            (conflict.key, collision) for conflict in undecided for collision in conflict.collisions
        ]
        hints = [f"{key} is not combined: {collision.reason}" for key, collision in collisions]
        if any(collision.rows for _, collision in collisions):
            hints.append("--rows-ours KEY, --rows-theirs KEY or --decisions FILE decide about rows")
        raise InvalidInput(
            f"stdin is not a terminal, and these conflicts are not decided: {keys}; decide by"
            f" {sides.options(undecided)}",
            hint="; ".join(hints),
        )
    app.output.err.print_lines(effect_lines(error.ways_out, app.output.err))
    resolver = _Resolver(app, conflict_report(error), sides, error.reference or "HEAD")
    decisions = [
        resolver.ask(conflict, f"{number} of {len(undecided)}: " if len(undecided) > 1 else "")
        for number, conflict in enumerate(undecided, 1)
    ]
    error.left = [
        conflict.key
        for conflict, decision in zip(undecided, decisions, strict=True)
        if decision.choice is Choice.SKIP
    ]
    return decisions


class _Resolver:
    """Asks about one conflict after the other."""

    def __init__(self, app: Invocation, report: ConflictReport, sides: Sides, branch: str) -> None:
        self._app = app
        self._err = app.output.err
        # The answers resolve the conflict, so no command lines are shown.
        self._report = report._replace(ways_out=WaysOut())
        self._ways_out = report.ways_out
        self._sides = sides
        self._branch = branch

    def ask(self, conflict: Conflict, place: str) -> Decision:
        """Shows a conflict and asks until it is decided. `place` is printed before the question.

        A conflict that only a commit on the target resolves is shown with that command, and
        skipped.
        """
        report = self._report._replace(conflicts=[conflict])
        by_commit = self._sides is not OF_BATCH and conflict.type in BY_COMMIT
        if by_commit:
            report = report._replace(ways_out=self._ways_out)
        self._err.print_lines(conflict_lines(report, self._err))
        if by_commit:
            return Decision(Choice.SKIP)
        sides = self._sides.of(conflict, self._branch, self._ways_out)
        if sides is not self._sides:
            self._explain(sides.explained_sides())
        while True:
            typed = ask(self._err, place + sides.question)
            answer = "abort" if typed is None else sides.meant(typed)
            if answer == "abort":
                raise Interrupted("aborted; nothing was changed")
            is_possible = answer != "theirs" or sides.is_theirs_possible
            if answer in _CHOICES and is_possible:
                return Decision(_CHOICES[answer])
            if answer != "edit" or not sides.is_edit_possible:
                self._answer_otherwise(typed, answer, sides, conflict)
            elif content := self._edit(conflict):
                return Decision(Choice.EDIT, content)

    def _answer_otherwise(
        self, typed: str | None, answer: str, sides: Sides, conflict: Conflict
    ) -> None:
        if not answer:
            self._err.print_text(f"unknown answer {typed!r}")
        self._explain(sides.explained())
        if answer == "?":
            self._err.print_lines(self._differences(conflict))

    def _explain(self, answers: Iterable[tuple[str, str]]) -> None:
        for answer, meaning in answers:
            self._err.print_text("  ", Span(f"{answer:<10} ", "command"), meaning)

    def _differences(self, conflict: Conflict) -> Iterator[Line]:
        """Returns each side's changes since the base, or those between the sides without a base."""
        base, ours, theirs = zip(
            self._report.sides.titles,
            (conflict.expected, conflict.actual, conflict.proposed),
            (None, conflict.target_rename, conflict.source_rename),
            strict=True,
        )
        pairs = [(base, ours), (base, theirs)] if base[1] else [(ours, theirs)]
        for (old, before, _), (new, after, rename) in pairs:
            yield [Span(f"{old} -> {new}", "heading")]
            if rename:
                yield [Span(f"  renamed from {rename.old} to {rename.new}", "label")]
            if before != after or not rename:
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
                content = edited_content(path.read_text(encoding="utf-8"))
                self._refuse_another(conflict, content)
            except (OSError, UnicodeDecodeError, NessieError) as error:
                self._err.print_text(f"not accepted: {error}")
                return None
        return content

    def _refuse_another(self, conflict: Conflict, content: Content) -> None:
        """Raises `InvalidInput` for a new value that is another content than that of a merge."""
        actual = conflict.actual
        if self._sides is OF_BATCH or actual is None:
            return
        if content.id not in (None, actual.id):
            raise InvalidInput(f"the content id is not {actual.id}")
        if content.type_name != actual.type_name:
            raise InvalidInput(f"the type is not {actual.type_name}")
