"""What a merge combines and decides, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from nessie_cli.kernel.commits import deletion
from nessie_cli.kernel.conflicts import KeyConflict, KeyOption, Place
from nessie_cli.kernel.forms import Id
from nessie_cli.kernel.merged_value import Value
from nessie_cli.model import MergeBehavior


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


class Detail(Struct, frozen=True):
    """A key of the answer: its behavior, its records, and the conflict, if any.

    `target` is the record on the target before, `result` the one after. `source` is the record on
    the source: of the key, or in a merge per content of the same content. There, `source_at` and
    `result_at` name a commit and a key with the contents of `source` and `result`. If
    `is_resolved`, the caller supplied the result, which has no place.
    """

    behavior: MergeBehavior
    source: bytes | None
    target: bytes | None
    conflict: KeyConflict | None = None
    result: bytes | None = None
    source_at: Place | None = None
    result_at: Place | None = None
    is_resolved: bool = False


class Outcome(Struct):
    """The edits of the target, the details for the answer, and the removed records.

    `removed` contains the records of the merge base for keys that the source deleted.
    `if_source_wins` are the edits if the source wins every conflict; None if they follow from the
    details. `decided` are the keys, in all three states, of contents that the caller decided, and
    `decided_ids` their ids.
    `effect` is what the decisions change, compared with the same merge without them.
    `used` are the positions of those decisions of the caller that had a change to decide, and
    `resolved` of those whose content is written.
    """

    edits: dict[bytes, bytes | None] = {}
    details: dict[bytes, Detail] = {}
    namespace_conflicts: list[KeyConflict] = []
    removed: dict[bytes, bytes] = {}
    if_source_wins: Mapping[bytes, bytes | None] | None = None
    decided: frozenset[bytes] = frozenset()
    decided_ids: frozenset[bytes] = frozenset()
    effect: KeyOption | None = None
    used: frozenset[int] = frozenset()
    resolved: frozenset[int] = frozenset()

    @property
    def conflicts(self) -> list[KeyConflict]:
        """The conflicts of all keys."""
        return [detail.conflict for detail in self.details.values() if detail.conflict]

    @property
    def judged_keys(self) -> set[bytes]:
        """The keys that are in conflict, or about which a behavior of the caller decided."""
        return {
            key
            for key, detail in self.details.items()
            if detail.conflict or detail.behavior is not MergeBehavior.NORMAL or detail.is_resolved
        } | self.decided

    def edits_if_source_wins(self) -> dict[bytes, bytes | None]:
        """Returns the edits if the source wins every conflict.

        Later checks use them, so that one problem is reported once.
        """
        if self.if_source_wins is not None:
            return dict(self.if_source_wins)
        return self.edits | {
            key: detail.source for key, detail in self.details.items() if detail.conflict
        }

    def operations(self, target: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Returns the operations of the new commit, given the target's records of edited keys.

        A forced deletion is an operation even if the key does not exist.
        """
        put = {key: record for key, record in self.edits.items() if record is not None}
        before = {**self.removed, **target}
        gone = {
            key: deletion(before[key])
            for key, record in self.edits.items()
            if record is None and key in before
        }
        return put | gone
