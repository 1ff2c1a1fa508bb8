"""Renames in merges: a content id that left one key and appeared under another.

A rename on one side and a change on the other is one conflict that names both. `follow` combines
them instead: the new key gets the changed content.
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
"""Maps old keys to new keys."""


def _pairs(changes: Iterable[tuple[bytes, bytes | None, bytes | None]]) -> dict[bytes, bytes]:
    """Returns the renames in changes (key, before, after), found by content id."""
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
    """The renames on both sides of a merge, and their effect on its conflicts.

    The target's renames are searched only if a key that the source changed is missing there. The
    search costs the target's differences since the base.
    """

    def __init__(self, objects: Objects, changes: Sequence[ThreeWay], base: Id, target: Id) -> None:
        self._changes = {change.key: change for change in changes}
        self.source: Pairs = _pairs((t.key, t.before, t.after) for t in changes)
        self.target: Pairs = {}
        if any(t.before is not None and t.target is None for t in changes):
            self.target = _pairs(tree.diff(objects, base, target))
        self._at_target = tree.get(objects, target, self.target.values())

    def explain(self, outcome: Outcome) -> None:
        """Names the renames in the conflicts, and joins two conflicts that have one cause."""
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
                outcome.replace_conflict(
                    structs.replace(
                        conflict,
                        actual=self._at_target.get(target_new) if target_new else change.target,
                        proposed=proposed,
                        source_rename=(key, source_new) if source_new else None,
                        target_rename=(key, target_new) if target_new else None,
                    )
                )

    def _onto_existing(self, outcome: Outcome) -> None:
        """Makes a rename to a key that exists on the target a conflict, whatever was expected."""
        for new in self.source.values():
            here, change = outcome.details.get(new), self._changes[new]
            if here and here.conflict and change.before is None and change.target is not None:
                outcome.replace_conflict(
                    structs.replace(here.conflict, type=ConflictType.KEY_EXISTS)
                )

    def _same_rename(self, outcome: Outcome, change: ThreeWay, new: bytes) -> None:
        """Handles the same rename on both sides: it conflicts only if the contents differ."""
        outcome.resolve(change.key, {})
        here = outcome.details.get(new)
        if here is None or here.conflict is None:
            return
        source, target = self._changes[new].after, self._at_target.get(new)
        assert source is not None
        assert target is not None
        if _same_value(target, change.before):
            outcome.resolve(new, {new: source})
        elif _same_value(source, change.before):
            outcome.resolve(new, {})
        else:
            outcome.replace_conflict(
                structs.replace(
                    here.conflict, type=ConflictType.VALUE_DIFFERS, expected=change.before
                )
            )

    def _forced(
        self, outcome: Outcome, key: bytes, source_new: bytes | None, target_new: bytes | None
    ) -> None:
        """Removes the target's new key if FORCE keeps the old one, so no content has two keys."""
        if (
            outcome.details[key].behavior is MergeBehavior.FORCE
            and target_new
            and target_new != source_new
        ):
            outcome.edits.setdefault(target_new, None)

    def follow(self, outcome: Outcome) -> None:
        """Resolves conflicts of a rename with a change: the new key gets the changed content."""
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
            outcome.resolve(change.key, {change.key: None, new: change.target})

    def _follow_target(self, outcome: Outcome, change: ThreeWay, new: bytes) -> None:
        here = self._at_target[new]
        if _same_value(here, change.before):
            outcome.resolve(change.key, {new: change.after})


def _same_value(record: bytes, other: bytes | None) -> bool:
    return other is not None and value_id_of(record) == value_id_of(other)
