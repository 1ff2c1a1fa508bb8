"""Random states of a few contents under a few keys, and a merge of two of them.

A state maps a key to a content id, a value, and whether the content is a namespace.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import NamedTuple

from nessie_cli.kernel import content_rules
from nessie_cli.kernel.content_changes import ContentStates, OtherContents, Position
from nessie_cli.kernel.content_merge import ContentChoice, ContentMerge, merge_contents
from nessie_cli.kernel.forms import content_id_of, record_of
from nessie_cli.kernel.outcome import KeyConflict
from nessie_cli.model import IcebergTable, MergeBehavior, Namespace

KEYS = [b"a", b"b", b"c", b"d"]


class Item(NamedTuple):
    id: int
    value: int
    is_namespace: bool = False

    def record(self) -> bytes:
        payload = Namespace.payload if self.is_namespace else IcebergTable.payload
        value = hashlib.sha256(bytes([self.value])).digest()
        return record_of(payload, bytes(15) + bytes([self.id]), value)


State = Mapping[bytes, Item]


class History:
    """Makes a base and two sides by random operations."""

    def __init__(self, seed: int, keys: int = 4) -> None:
        self.random = random.Random(seed)
        self.keys = KEYS[:keys]
        self._last_id = 0
        self.base: dict[bytes, Item] = {}
        for key in self.keys:
            if self.random.random() < 0.7:
                self._create(self.base, key)
        self.ours = self._side()
        self.theirs = self._side()

    def _create(self, state: dict[bytes, Item], key: bytes) -> None:
        self._last_id += 1
        state[key] = Item(self._last_id, self.random.randrange(2), self.random.random() < 0.15)

    def _side(self) -> dict[bytes, Item]:
        state = dict(self.base)
        for _ in range(self.random.randrange(5)):
            self._operate(state)
        return state

    def _operate(self, state: dict[bytes, Item]) -> None:
        key, other = self.random.choice(self.keys), self.random.choice(self.keys)
        match self.random.randrange(6):
            case 0 if key in state:
                state[key] = state[key]._replace(value=self.random.randrange(4))
            case 1 if key in state:
                del state[key]
            case 2:
                state.pop(key, None)
                self._create(state, key)
            case 3 | 4 if key in state and other not in state:
                state[other] = state.pop(key)
            case 5 if key in state and other in state:
                state[key], state[other] = state[other], state[key]


def positions(state: State) -> dict[bytes, Position]:
    """Returns the position of each content, by id."""
    return {content_id_of(i.record()): Position(k, i.record()) for k, i in state.items()}


def merge(
    base: State,
    ours: State,
    theirs: State,
    choices: tuple[ContentChoice, ...] = (),
    default: MergeBehavior = MergeBehavior.NORMAL,
) -> ContentMerge:
    before, here, there = map(positions, (base, ours, theirs))
    changes = [
        ContentStates(before.get(id_), here.get(id_), there.get(id_))
        for id_ in dict.fromkeys([*before, *there])
        if before.get(id_) != there.get(id_)
    ]
    others = OtherContents(lambda key: ours[key].record() if key in ours else None, there.get)
    return merge_contents(changes, others, choices, default)


def conflicts_of(result: ContentMerge) -> list[KeyConflict]:
    return [result.conflict(verdict) for verdict in result.contested]


def conflicts_with_options(
    sides: tuple[State, State, State], choices: tuple[ContentChoice, ...]
) -> list[KeyConflict]:
    """Returns the conflicts of a merge with their options."""
    there = positions(sides[2])
    ours = sides[1]
    others = OtherContents(lambda key: ours[key].record() if key in ours else None, there.get)
    return content_rules.conflicts_of(
        merge(*sides, choices=choices),
        lambda states, again: merge_contents(states, others, again),
        lambda *_: False,
    )


def keys_by_id(state: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Returns the key of each content, by id."""
    return {content_id_of(record): key for key, record in state.items()}


def records(state: State) -> dict[bytes, bytes]:
    """Returns the record of each key."""
    return {key: item.record() for key, item in state.items()}


def applied(ours: State, result: ContentMerge) -> dict[bytes, bytes]:
    """Returns ours after the edits of a merge."""
    after: dict[bytes, bytes | None] = {**records(ours)}
    after |= result.edits()
    return {key: record for key, record in after.items() if record is not None}
