"""Decisions about the keys in conflict, by options and by answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from nessie_cli.cli.merge.sides import Sides
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


class Decisions:
    """The decisions so far, by key, and the names of the two states.

    Raises `InvalidInput` if options name a key twice.
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
        for texts, choice in ((ours, Choice.OURS), (theirs, Choice.THEIRS)):
            for text in texts:
                self._add(ContentKey.parse(text), Decision(choice))
        for key, content in contents.items():
            self._add(key, Decision(Choice.EDIT, content))

    def _add(self, key: ContentKey, decision: Decision) -> None:
        if key in self.of:
            raise InvalidInput(f"{key}: the key is named twice")
        self.of[key] = decision

    def refuse_other_keys(self, conflicts: Collection[Conflict]) -> None:
        """Raises `InvalidInput` for a decision about a key that is not in conflict."""
        keys = {conflict.key for conflict in conflicts}
        for key in self.of:
            if key not in keys:
                raise InvalidInput(f"{key} is not in conflict")
