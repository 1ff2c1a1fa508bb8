"""Contents in three states, decisions about them, and the outcome for each."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from nessie_cli.kernel.forms import content_id_of, decode_key, format_content_id
from nessie_cli.model import ConflictType, MergeBehavior


class Position(NamedTuple):
    """A content in a state: its key and its record."""

    key: bytes
    record: bytes


class ContentStates(NamedTuple):
    """The positions of one content in three states; None if the state does not contain it."""

    base: Position | None
    ours: Position | None
    theirs: Position | None

    @property
    def content_id(self) -> bytes:
        """The content id."""
        return content_id_of(self._any.record)

    @property
    def key(self) -> bytes:
        """The key on ours, else on theirs, else at the base."""
        return self._any.key

    @property
    def _any(self) -> Position:
        position = self.ours or self.theirs or self.base
        assert position is not None
        return position


class Side(IntEnum):
    """The side that a content is taken from. The number is its index in `ContentStates`."""

    OURS = 1
    THEIRS = 2


SIDES = {MergeBehavior.DROP: Side.OURS, MergeBehavior.FORCE: Side.THEIRS}


class ContentChoice(Struct, frozen=True):
    """A decision about a content, which is named by one of its keys or by its id.

    FORCE takes it from theirs, DROP from ours. NORMAL with a record `resolved` stores that record.
    `expected` is the record on ours that the caller has seen; another one is a conflict.
    `is_of_commit` is whether it is for one transplanted commit, and not for all.
    """

    key: bytes
    behavior: MergeBehavior
    content_id: bytes | None = None
    expected: bytes | None = None
    resolved: bytes | None = None
    is_of_commit: bool = False

    def __str__(self) -> str:
        """Returns the name that the caller used."""
        return format_content_id(self.content_id) if self.content_id else plain(self.key)


class Verdict(Struct, eq=False):
    """The outcome for one content.

    `conflict` is the conflict between its two sides, and `holder` the content that holds the key at
    which it arrives. With either of them, `result` is not final. `side` is set if a decision, or
    one about a content that claimed the same key, took it from one side. `is_resolved` is whether
    the caller supplied the value.
    """

    states: ContentStates
    result: Position | None
    conflict: ConflictType | None = None
    holder: Verdict | None = None
    side: Side | None = None
    is_resolved: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether `result` is final."""
        return self.conflict is None and self.holder is None

    @property
    def arrives(self) -> bool:
        """Whether the result is at a key that the content does not have on ours."""
        ours = self.states.ours
        return self.result is not None and (ours is None or ours.key != self.result.key)

    @property
    def conflict_key(self) -> bytes:
        """The key under which a conflict is reported."""
        return self.result.key if self.holder and self.result else self.states.key

    def decide(self, behavior: MergeBehavior) -> None:
        """Takes key and value from the side that a behavior means. NORMAL changes nothing."""
        if behavior is not MergeBehavior.NORMAL:
            self.take(SIDES[behavior])

    def take(self, side: Side) -> None:
        """Takes key and value from one side."""
        self.result, self.conflict, self.side = self.states[side], None, side

    def give_way(self, side: Side) -> None:
        """Takes the key from one side, and keeps the merged value: it lost a claim.

        A content that this side does not have is absent.
        """
        position = self.states[side]
        if self.result is not None:
            self.result = position and Position(position.key, self.result.record)
        self.side = side


def plain(key: bytes) -> str:
    """Returns a key for messages."""
    return decode_key(key).plain
