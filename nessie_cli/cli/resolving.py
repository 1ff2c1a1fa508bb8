"""Deciding conflicts one by one: by options in scripts, by questions on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.errors import InvalidInput, NessieError, ReferenceConflict
from nessie_cli.model import Conflict, Content, ContentKey

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.render.conflicts import ConflictReport

QUESTION = "[o]urs: as it is now, [t]heirs: as proposed, [e]dit, [s]kip, [a]bort?"


class Choice(StrEnum):
    """What can be decided about a conflict."""

    OURS = "o"
    THEIRS = "t"
    EDIT = "e"
    SKIP = "s"
    ABORT = "a"


class Decision(NamedTuple):
    """What was decided about one key; `content` where it was edited."""

    choice: Choice
    content: Content | None = None


class Decisions:
    """What was decided so far, by the options and by answers."""

    def __init__(self, ours: Sequence[str], theirs: Sequence[str], resolve: Mapping[ContentKey, Content]) -> None:
        self.of: dict[ContentKey, Decision] = {}
        for option, texts, choice in (("--ours", ours, Choice.OURS), ("--theirs", theirs, Choice.THEIRS)):
            for text in texts:
                self._take(option, ContentKey.parse(text), Decision(choice))
        for key, content in resolve.items():
            self._take("--resolve", key, Decision(Choice.EDIT, content))

    def _take(self, option: str, key: ContentKey, decision: Decision) -> None:
        if key in self.of:
            raise InvalidInput(f"{option} {key}: the key is named twice")
        self.of[key] = decision

    def refuse_strangers(self, conflicts: Collection[Conflict]) -> None:
        """Raise `InvalidInput` for a key that is decided but not in conflict."""
        known = {conflict.key for conflict in conflicts}
        for key in self.of:
            if key not in known:
                raise InvalidInput(f"{key}: is not in conflict")

    def complete(self, call: Invocation, error: ReferenceConflict) -> bool:
        """Ask about every conflict that is not decided yet; False where one was skipped, which is then still open.

        Raises `InvalidInput` where nobody can be asked, and where all of it is given up.
        """
        open_ = [conflict for conflict in error.conflicts if conflict.key is not None and conflict.key not in self.of]
        if not open_:
            return True
        if not sys.stdin.isatty():
            keys = ", ".join(str(conflict.key) for conflict in open_)
            raise InvalidInput(f"stdin is no terminal, and not decided: {keys}; decide by --ours KEY, --theirs KEY or --resolve KEY=FILE")
        skipped = False
        from nessie_cli.cli.errors.conflicts import conflict_report

        report = conflict_report(error, call)._replace(resolutions=lambda _: ())
        for number, conflict in enumerate(open_, 1):
            decision = ask(call, conflict, report, f"{number} of {len(open_)}: " if len(open_) > 1 else "")
            if decision.choice is Choice.SKIP:
                skipped = True
            elif conflict.key is not None:
                self.of[conflict.key] = decision
        return not skipped


def ask(call: Invocation, conflict: Conflict, report: ConflictReport, place: str) -> Decision:
    """Show a conflict and ask until the answer is one; the end of input gives up. `place` stands before the question."""
    from nessie_cli.render.conflicts import conflict_lines

    call.err.print_lines(conflict_lines(report._replace(conflicts=[conflict]), call.err))
    while True:
        call.err.prompt(place + QUESTION)
        line = sys.stdin.readline()
        answer = line.strip().lower()[:1]
        if not line or answer == Choice.ABORT:
            raise InvalidInput("given up; nothing was changed")
        if answer == Choice.EDIT:
            edited = _edit(call, conflict)
            if edited is not None:
                return Decision(Choice.EDIT, edited)
        elif answer in (Choice.OURS, Choice.THEIRS, Choice.SKIP):
            return Decision(Choice(answer))


def _edit(call: Invocation, conflict: Conflict) -> Content | None:
    """Let the user's editor change the content; None, after a line that says why, where nothing useful came of it."""
    content = conflict.proposed or conflict.actual
    if content is None:
        call.err.print_line("there is no content to edit; take one side")
        return None
    import json
    import tempfile
    from pathlib import Path

    from nessie_cli.cli.editing import edit
    from nessie_cli.wire.decode import decode_content
    from nessie_cli.wire.encode import encode_content

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "content.json")
        path.write_text(json.dumps(encode_content(content), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        try:
            edit(path)
            return decode_content(path.read_bytes(), "the edited content", allow_unknown=True)
        except (OSError, NessieError) as error:
            call.err.print_line(f"not taken over: {error}")
    return None
