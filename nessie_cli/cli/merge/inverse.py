"""The inverse operations of a commit or a range.

They expect the state that the commit produced, so a key that has changed since is a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.cli.log.changes import changes_in
from nessie_cli.cli.staging.submission import new_request_id
from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import Content, ContentKey
from nessie_cli.render.changes import Change, changes_of
from nessie_cli.render.text import short_hash
from nessie_cli.revisions import RevisionRange
from nessie_cli.workspace.batch import Batch
from nessie_cli.workspace.staging import StagedList, State, put, rename, restore

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.repository.base import Repository


MOST_NAMED = 20
"""The maximum number of commits that the message of a range lists."""


class Reverted(NamedTuple):
    """A commit or range to revert: its last commit, its changes, and the default message."""

    last: str
    changes: Sequence[Change]
    message: str


def reverted(app: Invocation, text: str) -> Reverted:
    """Reads `COMMIT`, or `A..B`: the commits after A up to B.

    Raises `InvalidInput` for `A...B`, for an empty range, and if A is not an ancestor of B.
    """
    repository, meant = app.repository(), app.revision_range(text)
    if not isinstance(meant, RevisionRange):
        entry = repository.commit_at(meant)
        message = f'Revert "{entry.meta.subject}"\n\nThis reverts commit {entry.hash}.'
        return Reverted(entry.hash, changes_in(repository, entry), message)
    if meant.symmetric:
        raise InvalidInput(
            f"{text}: a range to revert has two dots; A..B means the commits after A up to B"
        )
    first, last = (repository.resolve(side).hash for side in (meant.start, meant.end))
    if first == last:
        raise InvalidInput(f"{text}: there are no commits after {meant.start} up to {meant.end}")
    if not repository.is_ancestor(first, last):
        raise InvalidInput(
            f"{text}: {meant.start} is not an ancestor of {meant.end}; A..B reverts the commits"
            " after A up to B"
        )
    return Reverted(
        last, changes_of(repository.diff(first, last)), "".join(_about(repository, meant, text))
    )


def _about(repository: Repository, meant: RevisionRange, text: str) -> Iterator[str]:
    """Yields the paragraphs of a message that lists the commits of a range, newest first."""
    entries = list(repository.log_excluding(meant.end, [meant.start]))
    ends = "..".join(_short(side) for side in text.split(".."))
    yield f"Revert {ends} ({len(entries)} commit{'' if len(entries) == 1 else 's'})\n"
    for entry in entries[:MOST_NAMED]:
        yield f'\nThis reverts commit {entry.hash} "{entry.meta.subject}".'
    if len(entries) > MOST_NAMED:
        yield f"\nAnd {len(entries) - MOST_NAMED} more."


def _short(revision: str) -> str:
    """Returns a revision with its full hashes abbreviated."""
    return re.sub(r"\b[0-9a-f]{13,64}\b", lambda found: short_hash(found[0]), revision)


def batch_of(
    repository: Repository,
    what: Reverted,
    head: str,
    ours: Collection[ContentKey] = (),
    theirs: Collection[ContentKey] = (),
) -> Batch:
    """Returns the inverse operations. Raises `InvalidInput` if there is nothing to revert."""
    touched = [key for change in what.changes for key in (change.key, change.old_key) if key]
    now = repository.contents(head, touched)
    staged = inverse(what.changes, ours, theirs, now)
    if not staged:
        if ours:
            raise InvalidInput("nothing is left to revert: --ours keeps every key that changed")
        reason = "is reverted already" if what.changes else "changed nothing"
        raise InvalidInput(f"there is nothing to revert: commit {short_hash(what.last)} {reason}")
    return Batch(what.last, staged, new_request_id())


def inverse(
    changes: Sequence[Change],
    ours: Collection[ContentKey],
    theirs: Collection[ContentKey],
    now: Mapping[ContentKey, Content],
) -> StagedList:
    """Returns the inverse of changes.

    `now` has the current contents. A key that is back in its state before the commit needs no
    change. Keys of `ours` keep their current state. Keys of `theirs` are reverted whatever their
    current state is. Raises `InvalidInput` for such a key that the commit did not change.
    """
    touched = {key for change in changes for key in (change.key, change.old_key) if key}
    for option, keys in (("--ours", ours), ("--theirs", theirs)):
        for key in keys:
            if key not in touched:
                raise InvalidInput(f"{option} {key}: the commit did not change this key")
            if key in theirs and key in ours:
                raise InvalidInput(f"{key}: the key is named twice")
    staged: StagedList = ()
    for change in changes:
        keys = {key for key in (change.key, change.old_key) if key}
        if not keys.intersection(ours) and not _is_undone(change, now):
            staged = _inverse(
                staged, change, now.get if keys.intersection(theirs) else _left_behind(change)
            )
    return staged


def _is_undone(change: Change, now: Mapping[ContentKey, Content]) -> bool:
    if change.old_key is None:
        return now.get(change.key) == change.before
    return change.key not in now and now.get(change.old_key) == change.before


def _left_behind(change: Change) -> State:
    return {change.key: change.after}.get


def _inverse(staged: StagedList, change: Change, state: State) -> StagedList:
    if change.old_key is None:
        return restore(staged, change.key, change.before, state)
    try:
        staged = rename(staged, change.key, change.old_key, state)
    except (ContentNotFound, AlreadyExists):
        # Only possible with the current state: the content is gone, or its key has another content.
        return restore(
            restore(staged, change.old_key, change.before, state), change.key, None, state
        )
    return (
        put(staged, change.old_key, change.before, state)
        if change.before and change.before != change.after
        else staged
    )
