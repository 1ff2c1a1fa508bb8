"""The contents that theirs changed since the base, with their positions in the three states.

Reads the difference between base and theirs, and that between base and ours only if a content moved
or is new: O(d log N) with d the differences of the sides that are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from nessie_cli.kernel import tree
from nessie_cli.kernel.content_merge import ContentStates, OtherContents, Position
from nessie_cli.kernel.decisions import Sides, ThreeWay
from nessie_cli.kernel.forms import Id, content_id_of
from nessie_cli.kernel.objects import Objects

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

    def __init__(self, objects: Objects, sides: Sides) -> None:
        self._objects = objects
        self._base, self._ours = sides.base, sides.target
        changes = [change for change in sides.changes if change.before != change.after]
        self._on_ours = {change.key: change.target for change in changes}
        self.states = self._states(changes)
        self.others = OtherContents(self._record_on_ours, self._position_at_base)

    def _states(self, changes: Sequence[ThreeWay]) -> list[ContentStates]:
        theirs = _Positions((change.key, change.before, change.after) for change in changes)
        states: list[ContentStates] = []
        for content_id in dict.fromkeys([*theirs.before, *theirs.after]):
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
    def _ours_changes(self) -> _Positions:
        return _Positions(tree.diff(self._objects, self._base, self._ours))

    def _record_on_ours(self, key: bytes) -> bytes | None:
        if key not in self._on_ours:
            self._on_ours |= {key: None, **tree.get(self._objects, self._ours, [key])}
        return self._on_ours[key]

    def _position_at_base(self, content_id: bytes) -> Position | None:
        """Returns the position on theirs of a content that theirs did not change."""
        return next(iter(self._ours_changes.before.get(content_id, ())), None)


def doubled_keys(
    objects: Objects,
    changes: Sequence[ThreeWay],
    base: Id,
    ours: Id,
    edits: Mapping[bytes, bytes | None],
) -> dict[bytes, bytes]:
    """Returns the keys to which edits of ours give a content id that another key has as well.

    Each is mapped to that other key. Base, ours and theirs have no content with two keys, so the
    other key differs between base and ours, or theirs changed it. O(d log N), only if an edit gives
    an id to a key.
    """
    before = tree.get(objects, ours, edits)
    arrivals: dict[bytes, bytes] = {}
    doubles: dict[bytes, bytes] = {}
    for key, record in edits.items():
        if record is None or (
            key in before and content_id_of(before[key]) == content_id_of(record)
        ):
            continue
        other = arrivals.setdefault(content_id_of(record), key)
        if other != key:
            doubles[key] = other
    if not arrivals:
        return {}
    on_ours = {key: after for key, _, after in tree.diff(objects, base, ours)}
    on_ours |= {change.key: change.target for change in changes}
    for key, record in on_ours.items():
        result = edits.get(key, record)
        arrival = arrivals.get(content_id_of(result)) if result is not None else None
        if arrival is not None and arrival != key:
            doubles[arrival] = key
    return doubles
