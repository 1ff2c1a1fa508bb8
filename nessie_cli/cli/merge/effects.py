"""What a decision about a conflict does to other contents, in one line for people."""

from __future__ import annotations

from nessie_cli.inspection.decisions import DecisionEffect, EffectKind, effects_of
from nessie_cli.inspection.text import visible
from nessie_cli.model import Conflict, MergeOption


def effect_of(option: MergeOption, conflict: Conflict, branch: str) -> str:
    """Returns what a decision renames, deletes and leaves out; "" for nothing."""
    return "; ".join(_described(effect, branch) for effect in effects_of(option, conflict))


def _described(effect: DecisionEffect, branch: str) -> str:
    key = visible(str(effect.key))
    if effect.kind is EffectKind.LEAVE_OUT:
        return f"leaves out the {key} of theirs"
    on_branch = f"{'the present ' if effect.gives_up_key else ''}{key} on {visible(branch)}"
    if effect.kind is EffectKind.DELETE:
        return f"deletes {on_branch}"
    return f"renames {on_branch} to {visible(str(effect.new_key))}"
