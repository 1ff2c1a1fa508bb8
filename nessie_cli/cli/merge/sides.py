"""The two states of a conflict, and their names in options and questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Sides(NamedTuple):
    """The names of the two states, the options that select them, and the effect of each answer.

    `ours` is the state of the branch, `theirs` that of the merge's source or of the staged batch.
    """

    ours: str
    theirs: str
    meaning_of_ours: str
    meaning_of_theirs: str
    meaning_of_skip: str

    @property
    def options(self) -> str:
        """Returns the options that decide a conflict, for an error message."""
        return f"--{self.ours} KEY, --{self.theirs} KEY or --resolve KEY=FILE"

    @property
    def question(self) -> str:
        """Returns the question about a conflict."""
        return f"{_key(self.ours)}, {_key(self.theirs)}, [e]dit, [s]kip, [a]bort, [?] help:"

    def explained(self) -> Iterator[tuple[str, str]]:
        """Yields each answer and its effect."""
        yield _key(self.ours), self.meaning_of_ours
        yield _key(self.theirs), self.meaning_of_theirs
        yield (
            "[e]dit",
            "write a new content: your editor opens with both sides between conflict markers",
        )
        yield "[s]kip", self.meaning_of_skip
        yield "[a]bort", "change nothing"
        yield "[?]", "show this help and what each side changed, with rows, files and schema"


def _key(name: str) -> str:
    return f"[{name[0]}]{name[1:]}"


OF_MERGE = Sides(
    "ours",
    "theirs",
    "keep the state of the target branch",
    "take the state of the source",
    "decide later; nothing is written if a conflict is skipped",
)
OF_REVERT = OF_MERGE._replace(
    meaning_of_ours="keep the current state",
    meaning_of_theirs="take the state before the commit",
)
OF_BATCH = Sides(
    "current",
    "proposed",
    "keep the current state, and drop the staged change",
    "keep the staged change, and stage it on the current state",
    "decide later; the change stays staged and in conflict",
)
