"""What a merge decides for each key, between the table that decides it and those that look at it again."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from nessie_cli.kernel.commits import deletion
from nessie_cli.kernel.conflicts import KeyConflict
from nessie_cli.model import MergeBehavior


class ThreeWay(Struct, frozen=True):
    """One key that the source changed: its records before, on the target, and after."""

    key: bytes
    before: bytes | None
    target: bytes | None
    after: bytes | None


class Detail(Struct, frozen=True):
    """One key of the answer: its behavior, the records on both sides, and the conflict, if any."""

    behavior: MergeBehavior
    source: bytes | None
    target: bytes | None
    conflict: KeyConflict | None = None


class Outcome(Struct):
    """What is to be written on the target, what is answered for each key, and what was at the merge base under the keys that go."""

    edits: dict[bytes, bytes | None] = {}
    details: dict[bytes, Detail] = {}
    namespace_conflicts: list[KeyConflict] = []
    removed: dict[bytes, bytes] = {}

    @property
    def conflicts(self) -> list[KeyConflict]:
        """The conflicts of all keys."""
        return [detail.conflict for detail in self.details.values() if detail.conflict]

    def edits_if_source_wins(self) -> dict[bytes, bytes | None]:
        """The edits if the source wins every conflict. Later checks use them, so that one fault is reported once."""
        return self.edits | {
            key: detail.source for key, detail in self.details.items() if detail.conflict
        }

    def settle(self, key: bytes, edits: Mapping[bytes, bytes | None]) -> None:
        """Take the conflict off a key and write these edits instead."""
        self.details[key] = structs.replace(self.details[key], conflict=None)
        self.edits.update(edits)

    def blame(self, conflict: KeyConflict) -> None:
        """Put another conflict in the place of a key's."""
        self.details[conflict.key] = structs.replace(self.details[conflict.key], conflict=conflict)

    def operations(self, target: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """The operations of the new commit, given the target's records of the edited keys.

        A forced removal is an operation even where the key is gone already.
        """
        put = {key: record for key, record in self.edits.items() if record is not None}
        before = {**self.removed, **target}
        gone = {
            key: deletion(before[key])
            for key, record in self.edits.items()
            if record is None and key in before
        }
        return put | gone
