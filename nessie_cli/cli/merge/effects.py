"""What a decision about a conflict does to other contents, in one line for people."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.model import Conflict, ConflictType, MergeBehavior, MergeOption
from nessie_cli.render.text import visible


def options_of(conflict: Conflict) -> Sequence[MergeOption]:
    """Returns the decisions that are possible about a conflict.

    A server that merges key by key does not send them, and a revert finds conflicts of namespaces
    by itself: a namespace that is still needed can be kept, of other contents each side can be
    taken, and another content at the key is then deleted.
    """
    if conflict.options or conflict.content_id is not None or conflict.key is None:
        return conflict.options
    if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
        return (MergeOption(MergeBehavior.DROP),)
    ours, theirs = conflict.actual, conflict.proposed
    is_other = ours is not None and (theirs is None or ours.id != theirs.id)
    is_left_out = theirs is not None and ours is not None and ours.id != theirs.id
    return (
        MergeOption(MergeBehavior.FORCE, deletes=(conflict.key,) if is_other else ()),
        MergeOption(MergeBehavior.DROP, leaves_out=(conflict.key,) if is_left_out else ()),
    )


def effect_of(option: MergeOption, conflict: Conflict, branch: str) -> str:
    """Returns what a decision renames, deletes and leaves out; "" for nothing."""
    taken = {new for _, new in option.renames}
    if option.behavior is MergeBehavior.FORCE and conflict.proposed and conflict.key:
        taken.add(conflict.theirs_key or conflict.key)

    def on_branch(key: object) -> str:
        # Another content has the key afterwards.
        present = "the present " if key in taken else ""
        return f"{present}{visible(str(key))} on {visible(branch)}"

    return "; ".join(
        [
            *(f"renames {on_branch(old)} to {visible(str(new))}" for old, new in option.renames),
            *(f"deletes {on_branch(key)}" for key in option.deletes),
            *(f"leaves out the {visible(str(key))} of theirs" for key in option.leaves_out),
        ]
    )
