"""Decisions that are possible about a content, and what each does to other contents.

A decision gives a content a key. The content that has this key on ours gives way, and may take the
key of a third one. Contents affect each other only if they share a key, so a decision is tried on
these contents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.conflicts import KeyConflict, KeyOption
from nessie_cli.kernel.content_merge import ContentMerge
from nessie_cli.kernel.content_verdicts import ContentChoice, ContentStates, Position, Verdict
from nessie_cli.model import MergeBehavior

MergeAgain = Callable[[Sequence[ContentStates], Sequence[ContentChoice]], ContentMerge]
"""Merges some of the contents with other decisions."""


def conflicts_of(merge: ContentMerge, again: MergeAgain) -> list[KeyConflict]:
    """Returns the conflicts of a merge with their options, in the order of the changes."""
    return [
        structs.replace(merge.conflict(verdict), options=options_of(merge, verdict.states, again))
        for verdict in merge.contested
    ]


def options_of(
    merge: ContentMerge,
    states: ContentStates,
    again: MergeAgain,
    behaviors: Sequence[MergeBehavior] = (MergeBehavior.FORCE, MergeBehavior.DROP),
) -> tuple[KeyOption, ...]:
    """Returns those decisions about a content that do not contradict the others of the merge.

    Costs one merge of the contents that share keys for each behavior.
    """
    if states not in merge.changed:
        return ()
    related = _related(merge, states)
    others = [c for each in related if each != states and (c := merge.given(each))]
    options = []
    for behavior in behaviors:
        try:
            tried = again(
                related, [*others, ContentChoice(states.key, behavior, states.content_id)]
            )
        except InvalidInput:
            continue
        if tried.verdict_of[states].is_settled:
            options.append(_option(behavior, merge, tried))
    return tuple(options)


def _related(merge: ContentMerge, states: ContentStates) -> list[ContentStates]:
    """Returns the contents that theirs changed and that share keys, also by way of others."""
    related = {states: None}
    reached: set[bytes] = set()
    keys = _keys(states)
    while keys:
        key = keys.pop()
        if key not in reached:
            reached.add(key)
            for each in merge.sharing(key):
                keys += _keys(each)
                related[each] = None
    return [each for each in related if each in merge.changed]


def _keys(states: ContentStates) -> list[bytes]:
    return [position.key for position in states if position is not None]


def _option(behavior: MergeBehavior, merge: ContentMerge, tried: ContentMerge) -> KeyOption:
    """Returns what a decision changes, compared with the merge in which it is open."""
    deletes, renames, leaves_out = [], [], []
    for verdict in tried.verdicts:
        _, ours, theirs = verdict.states
        earlier = merge.verdict_of.get(verdict.states)
        was = _result(earlier) if earlier else ours
        now = _result(verdict)
        if ours is not None:
            if now is None and was is not None:
                deletes.append(ours.key)
            elif now is not None and now.key not in (ours.key, was and was.key):
                renames.append((ours.key, now.key))
        elif theirs is not None and verdict.states.base is None and verdict.is_settled:
            is_open = earlier is not None and not earlier.is_settled
            if now is None and (was is not None or is_open):
                leaves_out.append(theirs.key)
    return KeyOption(behavior, tuple(deletes), tuple(renames), tuple(leaves_out))


def _result(verdict: Verdict) -> Position | None:
    """Returns the position after the merge; of a content in conflict, that on ours."""
    return verdict.result if verdict.is_settled else verdict.states.ours
