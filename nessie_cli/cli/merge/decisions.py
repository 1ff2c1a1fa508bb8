"""Decisions about the keys in conflict, by options and by answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from nessie_cli.cli.merge.sides import Sides
from nessie_cli.cli.staging.resolutions import OF_NAMESPACES
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Conflict, Content, ContentKey


class Choice(Enum):
    """The possible decisions."""

    OURS = auto()
    THEIRS = auto()
    EDIT = auto()
    SKIP = auto()


class Decision(NamedTuple):
    """A decision about one key. `content` is set for a new content."""

    choice: Choice
    content: Content | None = None


Question = tuple[ContentKey | None, bool]
"""A key in conflict, and whether the conflict is about the namespace that the key must have."""


def question_of(conflict: Conflict) -> Question:
    """Returns what a conflict of a batch asks. A key can have both kinds of conflicts."""
    return conflict.key, conflict.type in OF_NAMESPACES


class Decisions:
    """The decisions so far, and the names of the two states.

    `of` are those of options, by key. Raises `InvalidInput` if options name a key twice.
    """

    def __init__(
        self,
        sides: Sides,
        ours: Sequence[str],
        theirs: Sequence[str],
        contents: Mapping[ContentKey, Content],
    ) -> None:
        self.sides = sides
        self.of: dict[ContentKey, Decision] = {}
        self.answers: dict[Question, Decision] = {}
        """The answers of the user."""
        for texts, choice in ((ours, Choice.OURS), (theirs, Choice.THEIRS)):
            for text in texts:
                self._add(ContentKey.parse(text), Decision(choice))
        for key, content in contents.items():
            self._add(key, Decision(Choice.EDIT, content))

    def _add(self, key: ContentKey, decision: Decision) -> None:
        if key in self.of:
            raise InvalidInput(f"{key}: the key is named twice")
        self.of[key] = decision

    def about(self, conflict: Conflict) -> Decision | None:
        """Returns the decision about a conflict, if there is one."""
        answer = self.answers.get(question_of(conflict))
        return answer or (self.of.get(conflict.key) if conflict.key is not None else None)

    @property
    def kept_changes(self) -> set[ContentKey]:
        """The keys whose staged changes are kept, or get a new value."""
        answered = [(key, each) for (key, _), each in self.answers.items() if key is not None]
        return {
            key for key, each in (*self.of.items(), *answered) if each.choice is not Choice.OURS
        }

    def refuse_other_keys(self, conflicts: Collection[Conflict]) -> None:
        """Raises `InvalidInput` for a decision about a key that is not in conflict."""
        keys = {conflict.key for conflict in conflicts}
        for key in self.of:
            if key not in keys:
                raise InvalidInput(f"{key} is not in conflict")
