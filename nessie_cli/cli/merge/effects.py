"""What a decision about a conflict does to other contents, in one line for people."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.model import Conflict, ConflictType, MergeBehavior, MergeOption
from nessie_cli.render.text import visible


def options_of(conflict: Conflict) -> Sequence[MergeOption]:
    """Returns the decisions that are possible about a conflict.

    A namespace that is still needed can always be kept; a revert finds such a conflict only when it
    checks its operations.
    """
    if not conflict.options and conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
        return (MergeOption(MergeBehavior.DROP),)
    return conflict.options


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
