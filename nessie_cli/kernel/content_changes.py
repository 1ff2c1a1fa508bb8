"""The sides of a merge, and the contents that theirs changed, in all three states.

Reads the difference between base and theirs, and that between base and ours only if a content moved
or is new: O(d log N) with d the differences of the sides that are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import Id, content_id_of, is_namespace, with_content_id
from nessie_cli.kernel.merged_value import Value
from nessie_cli.kernel.objects import Objects


class ThreeWay(Struct, frozen=True):
    """A key that the source changed: its records before, on the target, and after."""

    key: bytes
    before: bytes | None
    target: bytes | None
    after: bytes | None


class MergeSides(Struct, frozen=True):
    """What a merge or one commit of a transplant combines.

    `base` and `target` are roots, `changes` are the keys that the source changed since the base.
    `head` is the commit of the target, `source` the one that is merged or transplanted. With
    several merge bases, `contested` are the values of contents, by their ids, about which these
    conflict; None with a single one.
    """

    base: Id
    target: Id
    changes: Sequence[ThreeWay]
    head: Id
    source: Id
    is_transplant: bool = False
    contested: Mapping[bytes, Value] | None = None


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
    def keys(self) -> list[bytes]:
        """Its keys in the states that have it."""
        return [position.key for position in self if position is not None]

    @property
    def _any(self) -> Position:
        position = self.ours or self.theirs or self.base
        assert position is not None
        return position


class OtherContents(NamedTuple):
    """Reads the contents that theirs did not change.

    `on_ours` returns the record of a key on ours. `on_theirs` returns the position of a content
    there.
    """

    on_ours: Callable[[bytes], bytes | None]
    on_theirs: Callable[[bytes], Position | None]


Difference = Iterable[tuple[bytes, bytes | None, bytes | None]]
"""Keys with their records before and after."""


class _Positions:
    """The positions of contents before and after a difference, by content id."""

    def __init__(self, difference: Difference) -> None:
        self.before: defaultdict[bytes, list[Position]] = defaultdict(list)
        self.after: defaultdict[bytes, list[Position]] = defaultdict(list)
        for key, before, after in difference:
            if before is not None:
                self.before[content_id_of(before)].append(Position(key, before))
            if after is not None:
                self.after[content_id_of(after)].append(Position(key, after))


class ContentChanges:
    """The contents that theirs changed (`states`), and a reader of the others (`others`)."""

    def __init__(self, objects: Objects, sides: MergeSides) -> None:
        self._objects = objects
        self._base, self._ours = sides.base, sides.target
        self._changes = changes = [c for c in sides.changes if c.before != c.after]
        self._on_ours = {change.key: change.target for change in changes}
        self.states = self._states(changes)

    @property
    def others(self) -> OtherContents:
        """Reads the other contents."""
        # An attribute would refer to itself, so the states would stay in memory as garbage.
        return OtherContents(self._record_on_ours, self._position_at_base)

    def _states(self, changes: Sequence[ThreeWay]) -> list[ContentStates]:
        theirs = _Positions((change.key, change.before, change.after) for change in changes)
        states = [each for change in changes if (each := self._created_again(change, theirs))]
        taken = {content_id_of(p.record) for each in states for p in each if p is not None}
        for content_id in dict.fromkeys([*theirs.before, *theirs.after]):
            if content_id in taken:
                continue
            before, after = theirs.before.get(content_id, []), theirs.after.get(content_id, [])
            if len(before) > 1 or len(after) > 1:
                states += self._by_key(content_id, before, after)
                continue
            positions = [*before, *after]
            ours = self._on_our_side(content_id, positions)
            states.append(
                ContentStates(before[0] if before else None, ours, after[0] if after else None)
            )
        return states

    def _created_again(self, change: ThreeWay, theirs: _Positions) -> ContentStates | None:
        """Returns the states of a namespace that one side changed and the other created again.

        If it was created as it was at the base, both are one namespace, and it counts as unchanged.
        Two branches that merged each other exchange the ids of a namespace that both created.
        """
        key, before, ours, after = change.key, change.before, change.target, change.after
        if before is None or ours is None or after is None or ours == before:
            return None
        if not all(map(is_namespace, (before, ours, after))):
            return None
        id_ = content_id_of(before)
        ids = {content_id_of(ours), content_id_of(after)}
        again = ours if content_id_of(after) == id_ else after
        if len(ids) == 1 or id_ not in ids or with_content_id(again, id_) != before:
            return None
        sides = (theirs.before, theirs.after, self._ours_changes.before, self._ours_changes.after)
        if any(p.key != key for positions in sides for i in ids for p in positions.get(i, ())):
            return None
        return ContentStates(*(Position(key, record) for record in (again, ours, after)))

    def _by_key(
        self, content_id: bytes, before: Sequence[Position], after: Sequence[Position]
    ) -> list[ContentStates]:
        """Returns the states of a content with two keys: each of its keys counts as a content.

        Only older versions could write such a state.
        """
        old, new = dict(before), dict(after)
        states = []
        for key in dict.fromkeys([*old, *new]):
            record = self._on_ours.get(key)
            ours = record if record and content_id_of(record) == content_id else None
            states.append(
                ContentStates(
                    *(
                        Position(key, side) if side is not None else None
                        for side in (old.get(key), ours, new.get(key))
                    )
                )
            )
        return states

    def _on_our_side(self, content_id: bytes, positions: Sequence[Position]) -> Position | None:
        """Returns the position of a content on ours. It is most likely one of `positions`."""
        for key, _ in positions:
            record = self._on_ours.get(key)
            if record is not None and content_id_of(record) == content_id:
                return Position(key, record)
        return next(iter(self._ours_changes.after.get(content_id, ())), None)

    @cached_property
    def _ours_difference(self) -> Sequence[tuple[bytes, bytes | None, bytes | None]]:
        return list(tree.diff(self._objects, self._base, self._ours))

    @cached_property
    def _ours_changes(self) -> _Positions:
        return _Positions(self._ours_difference)

    def values_of_ours(self) -> Iterator[Position]:
        """Yields the contents that ours has and the base does not have, or with another value."""
        before = self._ours_changes.before
        for content_id, positions in self._ours_changes.after.items():
            old = {record for _, record in before.get(content_id, ())}
            yield from (position for position in positions if position.record not in old)

    def doubled_keys(self, edits: Mapping[bytes, bytes | None]) -> dict[bytes, bytes]:
        """Returns the keys by which edits add a key to a content id, as `doubled_keys` does."""
        return doubled_keys(
            edits,
            self.others.on_ours,
            lambda: differing_keys(self._changes, self._ours_difference),
        )

    def _record_on_ours(self, key: bytes) -> bytes | None:
        if key not in self._on_ours:
            self._on_ours |= {key: None, **tree.get(self._objects, self._ours, [key])}
        return self._on_ours[key]

    def _position_at_base(self, content_id: bytes) -> Position | None:
        """Returns the position on theirs of a content that theirs did not change."""
        return next(iter(self._ours_changes.before.get(content_id, ())), None)


def doubled_keys(
    edits: Mapping[bytes, bytes | None],
    target: Callable[[bytes], bytes | None],
    differing: Callable[[], Mapping[bytes, bytes | None]],
) -> dict[bytes, bytes]:
    """Returns the keys by which edits of ours add a key to a content id that has another one.

    Each is mapped to that other key. `target` returns the record of a key on ours. `differing`
    returns those of the keys that ours or theirs changed since the base, and is called only if an
    edit gives an id to a key. A key that neither side changed is not found. If base, ours and
    theirs have no content with two keys, such a key cannot have an id that arrives.
    """
    arriving = {
        content_id_of(record)
        for key, record in edits.items()
        if record is not None and not _has_id(target(key), content_id_of(record))
    }
    if not arriving:
        return {}
    before: defaultdict[bytes, set[bytes]] = defaultdict(set)
    after: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for key, record in {**differing(), **{key: target(key) for key in edits}}.items():
        result = edits.get(key, record)
        for by_id, at in ((before, record), (after, result)):
            if at is not None and content_id_of(at) in arriving:
                by_id[content_id_of(at)].add(key)
    doubles: dict[bytes, bytes] = {}
    for content_id, keys in after.items():
        added = len(keys) - max(1, len(before[content_id]))
        for key in sorted(keys - before[content_id], reverse=True)[: max(0, added)]:
            doubles[key] = min(keys - {key})
    return doubles


def differing_keys(
    changes: Iterable[ThreeWay], ours_difference: Difference
) -> dict[bytes, bytes | None]:
    """Returns the records on ours of the keys that ours or theirs changed since the base."""
    differing = {key: after for key, _, after in ours_difference}
    return differing | {change.key: change.target for change in changes}


def _has_id(record: bytes | None, content_id: bytes) -> bool:
    return record is not None and content_id_of(record) == content_id
