"""The outcome of a commit or merge, key by key: edits, details and conflicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from nessie_cli.kernel.commits import deletion
from nessie_cli.kernel.forms import Id, decode_key, format_content_id
from nessie_cli.kernel.merged_value import MergedValue, Value, records_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentPlace,
    MergeBehavior,
    MergedBase,
    MergeOption,
    Rename,
)
from nessie_cli.model.conflicts import (
    MOST_REPORTED,
    conflict_text,
    same_file_text,
    second_key_text,
)

Place = tuple[Id, bytes]
"""A commit and a key."""


class KeyOption(Struct, frozen=True):
    """A possible decision about a conflict. The fields are those of `model.MergeOption`."""

    behavior: MergeBehavior
    deletes: tuple[bytes, ...] = ()
    renames: tuple[tuple[bytes, bytes], ...] = ()
    leaves_out: tuple[bytes, ...] = ()


def joined(first: KeyOption | None, second: KeyOption | None) -> KeyOption | None:
    """Returns what decisions about two transplanted commits change together."""
    if first is None or second is None:
        return first or second
    return KeyOption(
        second.behavior,
        tuple(dict.fromkeys(first.deletes + second.deletes)),
        tuple(dict.fromkeys(first.renames + second.renames)),
        tuple(dict.fromkeys(first.leaves_out + second.leaves_out)),
    )


class KeyConflict(Struct, frozen=True):
    """A conflict in terms of records. `describe` converts it into a `model.Conflict`.

    `other_key` is the key that has the content id already, if the change would give it a second
    key. The other fields are those of `model.Conflict`; places and `changed_key` are unset unless
    it is of a merge per content.
    """

    type: ConflictType
    key: bytes
    expected: bytes | None = None
    actual: bytes | None = None
    proposed: bytes | None = None
    source_rename: tuple[bytes, bytes] | None = None
    target_rename: tuple[bytes, bytes] | None = None
    content_id: bytes | None = None
    base_key: bytes | None = None
    theirs_key: bytes | None = None
    value_key: bytes | None = None
    is_ambiguous: bool = False
    commit: Id | None = None
    other_key: bytes | None = None
    same_file_key: bytes | None = None
    blocking_namespace: bytes | None = None
    options: tuple[KeyOption, ...] = ()
    actual_at: Place | UnsetType | None = UNSET
    proposed_at: Place | UnsetType | None = UNSET
    changed_key: bytes | UnsetType | None = UNSET
    merged_base: Value = None


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


# -- for callers -----------------------------------------------------------------------------------


ChangedBy = Callable[[bytes], CommitMeta | None]


def describe(
    objects: Objects,
    conflicts: Sequence[KeyConflict],
    source_change: ChangedBy,
    target_change: ChangedBy,
    *,
    shows_contents: bool = True,
) -> tuple[Conflict, ...]:
    """Returns the conflicts with the commits that caused them, and contents if `shows_contents`.

    Contents that are in no commit are always there, because they cannot be read otherwise.
    `target_change` and `source_change` return the commit that last changed a key on that side. Each
    takes longer than an operation, so only the first `MOST_REPORTED` conflicts have them.
    """
    records = [r for c in conflicts for r in (c.expected, c.actual, c.proposed) if r]
    if shows_contents:
        records += [r for c in conflicts for r in records_of(c.merged_base)]
    else:
        records = [r for c in conflicts for r in _without_place(c)]
    contents = objects.contents_by_record(records)

    def rename(pair: tuple[bytes, bytes] | None, changed_by: ChangedBy) -> Rename | None:
        return (
            Rename(decode_key(pair[0]), decode_key(pair[1]), changed_by(pair[1])) if pair else None
        )

    described: list[Conflict] = []
    for c in conflicts:
        if len(described) == MOST_REPORTED:
            source_change = target_change = _unknown
        key = decode_key(c.key)
        described.append(
            Conflict(
                type=c.type,
                key=key,
                message=conflict_text(c.type, key) + _rename_text(c),
                expected=contents.get(c.expected),
                actual=contents.get(c.actual),
                proposed=contents.get(c.proposed),
                changed_by=_last_change(c, target_change),
                source_rename=rename(c.source_rename, source_change),
                target_rename=rename(c.target_rename, target_change),
                content_id=format_content_id(c.content_id) if c.content_id else None,
                base_key=decode_key(c.base_key) if c.base_key else None,
                theirs_key=decode_key(c.theirs_key) if c.theirs_key else None,
                value_key=decode_key(c.value_key) if c.value_key else None,
                is_ambiguous=c.is_ambiguous,
                commit=c.commit.hex() if c.commit else None,
                other_key=decode_key(c.other_key) if c.other_key else None,
                same_file_key=decode_key(c.same_file_key) if c.same_file_key else None,
                blocking_namespace=(
                    decode_key(c.blocking_namespace) if c.blocking_namespace else None
                ),
                options=tuple(map(option_of, c.options)),
                actual_at=place_of(c.actual_at or None),
                proposed_at=place_of(c.proposed_at or None),
                changed_key=decode_key(c.changed_key) if c.changed_key else None,
                merged_base=_merged_base(c.merged_base, contents),
            )
        )
    return tuple(described)


def _merged_base(
    value: Value, contents: Mapping[bytes | None, Content]
) -> Content | MergedBase | None:
    if isinstance(value, MergedValue):
        sides = (_merged_base(each, contents) for each in (value.base, value.ours, value.theirs))
        return MergedBase(*sides)
    return contents.get(value)


def place_of(at: Place | None) -> ContentPlace | None:
    """Returns a place for programs."""
    return ContentPlace(at[0].hex(), decode_key(at[1])) if at else None


def _without_place(conflict: KeyConflict) -> list[bytes]:
    """Returns the records that are in no commit: the caller of a merge supplied them."""
    sides = (conflict.actual_at, conflict.actual), (conflict.proposed_at, conflict.proposed)
    return [record for at, record in sides if at is None and record is not None]


def _last_change(conflict: KeyConflict, target_change: ChangedBy) -> CommitMeta | None:
    key = conflict.key if conflict.changed_key is UNSET else conflict.changed_key
    return target_change(key) if key is not None else None


def _unknown(_: bytes) -> None:
    """Returns no commit for a key, without looking for one."""


def option_of(option: KeyOption) -> MergeOption:
    """Returns a decision for programs."""
    return MergeOption(
        option.behavior,
        tuple(map(decode_key, option.deletes)),
        tuple((decode_key(old), decode_key(new)) for old, new in option.renames),
        tuple(map(decode_key, option.leaves_out)),
    )


def _rename_text(conflict: KeyConflict) -> str:
    sides = (("source", conflict.source_rename), ("target", conflict.target_rename))
    text = "".join(
        f"; renamed to '{decode_key(pair[1]).plain}' on the {side}" for side, pair in sides if pair
    )
    if conflict.other_key is not None:
        text += second_key_text(decode_key(conflict.other_key))
    if conflict.same_file_key is not None:
        text += same_file_text(decode_key(conflict.same_file_key))
    return text
