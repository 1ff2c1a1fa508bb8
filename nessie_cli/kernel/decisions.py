"""The decisions of a merge for each key."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from nessie_cli.kernel.commits import deletion
from nessie_cli.kernel.conflicts import KeyConflict
from nessie_cli.model import MergeBehavior


class ThreeWay(Struct, frozen=True):
    """A key that the source changed: its records before, on the target, and after."""

    key: bytes
    before: bytes | None
    target: bytes | None
    after: bytes | None


class Detail(Struct, frozen=True):
    """A key of the answer: its behavior, the records on both sides, and the conflict, if any."""

    behavior: MergeBehavior
    source: bytes | None
    target: bytes | None
    conflict: KeyConflict | None = None


class Outcome(Struct):
    """The edits of the target, the details for the answer, and the removed records.

    `removed` contains the records of the merge base for keys that the source deleted.
    """

    edits: dict[bytes, bytes | None] = {}
    details: dict[bytes, Detail] = {}
    namespace_conflicts: list[KeyConflict] = []
    removed: dict[bytes, bytes] = {}

    @property
    def conflicts(self) -> list[KeyConflict]:
        """The conflicts of all keys."""
        return [detail.conflict for detail in self.details.values() if detail.conflict]

    def edits_if_source_wins(self) -> dict[bytes, bytes | None]:
        """Returns the edits if the source wins every conflict.

        Later checks use them, so that one problem is reported once.
        """
        return self.edits | {
            key: detail.source for key, detail in self.details.items() if detail.conflict
        }

    def resolve(self, key: bytes, edits: Mapping[bytes, bytes | None]) -> None:
        """Removes the conflict of a key and adds these edits instead."""
        self.details[key] = structs.replace(self.details[key], conflict=None)
        self.edits.update(edits)

    def replace_conflict(self, conflict: KeyConflict) -> None:
        """Replaces the conflict of a key."""
        self.details[conflict.key] = structs.replace(self.details[conflict.key], conflict=conflict)

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
