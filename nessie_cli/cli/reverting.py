"""The inverse of a commit, as operations that expect what the commit left behind: whatever has changed since is a conflict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import Content, ContentKey
from nessie_cli.render.changes import Change
from nessie_cli.workspace.staging import StagedList, State, put, rename, restore


def inverse(changes: Sequence[Change], ours: Collection[ContentKey], theirs: Collection[ContentKey], now: Mapping[ContentKey, Content]) -> StagedList:
    """The operations that take changes back.

    Keys of `ours` are left as they are now. For keys of `theirs` the state `now` is what is expected, not what the commit left behind. Raises
    `InvalidInput` for a key in one of them that the commit did not change.
    """
    touched = {key for change in changes for key in (change.key, change.old_key) if key}
    for option, keys in (("--ours", ours), ("--theirs", theirs)):
        for key in keys:
            if key not in touched:
                raise InvalidInput(f"{option} {key}: the commit did not change this key")
    staged: StagedList = ()
    for change in changes:
        keys = {key for key in (change.key, change.old_key) if key}
        if not keys.intersection(ours):
            staged = _taken_back(staged, change, now.get if keys.intersection(theirs) else _left_behind(change))
    return staged


def _left_behind(change: Change) -> State:
    return {change.key: change.after}.get


def _taken_back(staged: StagedList, change: Change, state: State) -> StagedList:
    if change.old_key is None:
        return restore(staged, change.key, change.before, state)
    try:
        staged = rename(staged, change.key, change.old_key, state)
    except (ContentNotFound, AlreadyExists):
        # Only where `state` is that of now: the content is gone, or another one has taken its key.
        return restore(restore(staged, change.old_key, change.before, state), change.key, None, state)
    return put(staged, change.old_key, change.before, state) if change.before and change.before != change.after else staged
