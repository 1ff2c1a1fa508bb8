"""The decisions that are possible about a conflict, and what each does to other contents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum, auto
from typing import NamedTuple

from nessie_cli.model import (
    Conflict,
    ConflictType,
    ContentKey,
    MergeBehavior,
    MergeOption,
)


class EffectKind(Enum):
    """What a decision does to another content of the target or of theirs."""

    RENAME = auto()
    DELETE = auto()
    LEAVE_OUT = auto()


class DecisionEffect(NamedTuple):
    """What a decision does to another content.

    `new_key` is set for a rename. With `gives_up_key`, another content has the key afterwards.
    """

    kind: EffectKind
    key: ContentKey
    new_key: ContentKey | None = None
    gives_up_key: bool = False


def options_of(conflict: Conflict) -> Sequence[MergeOption]:
    """Returns the decisions that are possible about a conflict.

    A namespace that is still needed can be kept if no content is known: a revert finds such a
    conflict only when it checks its operations.
    """
    is_needed = conflict.type is ConflictType.NAMESPACE_NOT_EMPTY
    if is_needed and not conflict.options and conflict.content_id is None:
        return (MergeOption(MergeBehavior.DROP),)
    return conflict.options


def needed_namespace(conflict: Conflict) -> ContentKey | None:
    """Returns the namespace with contents that theirs would remove, if theirs is not possible."""
    is_needed = conflict.type is ConflictType.NAMESPACE_NOT_EMPTY
    return conflict.key if is_needed else conflict.blocking_namespace


def effects_of(option: MergeOption, conflict: Conflict) -> list[DecisionEffect]:
    """Returns what a decision renames, deletes and leaves out besides the contents in conflict."""
    taken = {new for _, new in option.renames}
    if option.behavior is MergeBehavior.FORCE and conflict.proposed and conflict.key:
        taken.add(conflict.theirs_key or conflict.key)
    return _effects(option, taken)


def effects_of_given(
    decided: MergeOption | None, conflicts: Sequence[Conflict]
) -> list[DecisionEffect]:
    """Returns what the decisions that were given to a merge rename, delete and leave out.

    `decided` and `conflicts` are those of its error. A namespace that is still needed is left out:
    the decision about it cannot be carried out.
    """
    if decided is None:
        return []
    needed = {c.key for c in conflicts if c.type is ConflictType.NAMESPACE_NOT_EMPTY}
    # Other contents may have the keys afterwards.
    taken = {*decided.deletes, *(old for old, _ in decided.renames)}
    return [effect for effect in _effects(decided, taken) if effect.key not in needed]


def _effects(option: MergeOption, taken: Collection[ContentKey]) -> list[DecisionEffect]:
    return [
        *(DecisionEffect(EffectKind.RENAME, old, new, old in taken) for old, new in option.renames),
        *(DecisionEffect(EffectKind.DELETE, key, None, key in taken) for key in option.deletes),
        *(DecisionEffect(EffectKind.LEAVE_OUT, key) for key in option.leaves_out),
    ]
