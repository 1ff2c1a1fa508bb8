"""Renames in merges: the content id tells that a key that went and a key that came are one content.

A rename on one side and a change on the other is one conflict that says so; `follow` combines both instead: the new key with the changed content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from nessie_cli.kernel import tree
from nessie_cli.kernel.decisions import Outcome, ThreeWay
from nessie_cli.kernel.forms import Id, content_id_of, value_id_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import ConflictType, MergeBehavior

Pairs = Mapping[bytes, bytes]
"""Old key to new key."""


def _pairs(changes: Iterable[tuple[bytes, bytes | None, bytes | None]]) -> dict[bytes, bytes]:
    """Of changes (key, before, after): where a content id left one key and came to another."""
    gone: dict[bytes, bytes] = {}
    came: dict[bytes, bytes] = {}
    for key, before, after in changes:
        left = content_id_of(before) if before else None
        arrived = content_id_of(after) if after else None
        if left != arrived:
            if left is not None:
                gone[left] = key
            if arrived is not None:
                came[arrived] = key
    return {key: came[content_id] for content_id, key in gone.items() if content_id in came}


class Renames:
    """The renames of both sides of a merge, and what they make of its conflicts.

    The target's are looked for only when a key that the source changed is gone there: it costs the target's differences since the base.
    """

    def __init__(self, objects: Objects, changes: Sequence[ThreeWay], base: Id, target: Id) -> None:
        self._changes = {change.key: change for change in changes}
        self.source: Pairs = _pairs((t.key, t.before, t.after) for t in changes)
        self.target: Pairs = {}
        if any(t.before is not None and t.target is None for t in changes):
            self.target = _pairs(tree.diff(objects, base, target))
        self._at_target = tree.get(objects, target, self.target.values())

    def explain(self, outcome: Outcome) -> None:
        """Name the renames in the conflicts that come of them, and join what is one conflict under two keys."""
        self._onto_existing(outcome)
        for key, change in self._changes.items():
            source_new, target_new = self.source.get(key), self.target.get(key)
            if key not in outcome.details or (source_new is None and target_new is None):
                continue
            conflict = outcome.details[key].conflict
            if conflict is None:
                self._forced(outcome, key, source_new, target_new)
            elif source_new is not None and source_new == target_new:
                self._same_rename(outcome, change, source_new)
            else:
                proposed = self._changes[source_new].after if source_new else change.after
                outcome.blame(
                    structs.replace(
                        conflict,
                        actual=self._at_target.get(target_new) if target_new else change.target,
                        proposed=proposed,
                        source_rename=(key, source_new) if source_new else None,
                        target_rename=(key, target_new) if target_new else None,
                    )
                )

    def _onto_existing(self, outcome: Outcome) -> None:
        """A rename onto a key that the target has meets another content there, whatever the caller expected of it."""
        for new in self.source.values():
            here, change = outcome.details.get(new), self._changes[new]
            if here and here.conflict and change.before is None and change.target is not None:
                outcome.blame(structs.replace(here.conflict, type=ConflictType.KEY_EXISTS))

    def _same_rename(self, outcome: Outcome, change: ThreeWay, new: bytes) -> None:
        """Both sides renamed alike: no conflict on the old key; on the new one only where the content differs."""
        outcome.settle(change.key, {})
        here = outcome.details.get(new)
        if here is None or here.conflict is None:
            return
        source, target = self._changes[new].after, self._at_target.get(new)
        assert source is not None
        assert target is not None
        if _same_value(target, change.before):
            outcome.settle(new, {new: source})
        elif _same_value(source, change.before):
            outcome.settle(new, {})
        else:
            outcome.blame(
                structs.replace(
                    here.conflict, type=ConflictType.VALUE_DIFFERS, expected=change.before
                )
            )

    def _forced(
        self, outcome: Outcome, key: bytes, source_new: bytes | None, target_new: bytes | None
    ) -> None:
        """The source's state was forced over a rename on the target: one content must not end under two keys."""
        if (
            outcome.details[key].behavior is MergeBehavior.FORCE
            and target_new
            and target_new != source_new
        ):
            outcome.edits.setdefault(target_new, None)

    def follow(self, outcome: Outcome) -> None:
        """Settle the conflicts of a rename on one side and a change on the other: the new key with the changed content."""
        for conflict in outcome.conflicts:
            change = self._changes[conflict.key]
            if change.before is None:
                continue
            if conflict.source_rename and not conflict.target_rename and change.target is not None:
                self._follow_source(outcome, change, conflict.source_rename[1])
            elif conflict.target_rename and not conflict.source_rename and change.after is not None:
                self._follow_target(outcome, change, conflict.target_rename[1])

    def _follow_source(self, outcome: Outcome, change: ThreeWay, new: bytes) -> None:
        renamed = self._changes[new].after
        same_content = (
            change.target is not None
            and change.before is not None
            and content_id_of(change.target) == content_id_of(change.before)
        )
        if (
            same_content
            and renamed is not None
            and _same_value(renamed, change.before)
            and new in outcome.edits
        ):
            outcome.settle(change.key, {change.key: None, new: change.target})

    def _follow_target(self, outcome: Outcome, change: ThreeWay, new: bytes) -> None:
        here = self._at_target[new]
        if _same_value(here, change.before):
            outcome.settle(change.key, {new: change.after})


def _same_value(record: bytes, other: bytes | None) -> bool:
    return other is not None and value_id_of(record) == value_id_of(other)
