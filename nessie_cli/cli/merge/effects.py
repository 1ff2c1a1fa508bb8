"""What a decision about a conflict does to other contents, in one line for people."""

from __future__ import annotations

from nessie_cli.errors import ReferenceConflict
from nessie_cli.inspection.decisions import (
    DecisionEffect,
    EffectKind,
    effects_of,
    effects_of_given,
)
from nessie_cli.inspection.text import visible
from nessie_cli.model import Conflict, MergeOption
from nessie_cli.render.text import counted

SEPARATOR = "; "
_MOST_LEFT_OUT = 10
"""The number of contents of theirs that a text names as left out; the others are counted."""


def effect_of(option: MergeOption, conflict: Conflict, branch: str) -> str:
    """Returns what a decision renames, deletes and leaves out; "" for nothing."""
    return SEPARATOR.join(_described(effect, branch) for effect in effects_of(option, conflict))


def effect_of_given(error: ReferenceConflict, branch: str) -> str:
    """Returns what the decisions that were given rename, delete and leave out; "" for nothing."""
    effects = effects_of_given(error.decided, error.conflicts)
    left_out = [effect for effect in effects if effect.kind is EffectKind.LEAVE_OUT]
    unnamed = left_out[_MOST_LEFT_OUT:]
    texts = [_described(effect, branch) for effect in effects if effect not in unnamed]
    if unnamed:
        texts.append(f"leaves out {counted(len(unnamed), 'more content')} of theirs")
    return SEPARATOR.join(texts)


def _described(effect: DecisionEffect, branch: str) -> str:
    key = visible(str(effect.key))
    if effect.kind is EffectKind.LEAVE_OUT:
        return f"leaves out the {key} of theirs"
    on_branch = f"{'the present ' if effect.gives_up_key else ''}{key} on {visible(branch)}"
    if effect.kind is EffectKind.DELETE:
        return f"deletes {on_branch}"
    return f"renames {on_branch} to {visible(str(effect.new_key))}"
