"""The inverse of a commit or of a range, as operations that expect what it left behind: whatever has changed since is a conflict."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.cli.errors.resolutions import HASH_DIGITS
from nessie_cli.cli.log.changes import changes_in
from nessie_cli.cli.submission import new_request_id
from nessie_cli.commitspec import CommitRange
from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import Content, ContentKey
from nessie_cli.render.changes import Change, changes_of
from nessie_cli.workspace.batch import Batch
from nessie_cli.workspace.staging import StagedList, State, put, rename, restore

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.repository.base import Repository


class TakenBack(NamedTuple):
    """What is to be taken back: its last commit, what it changed all in all, and what a message says about it."""

    last: str
    changes: Sequence[Change]
    message: str

    @property
    def title(self) -> str:
        """The subject of the message."""
        return self.message.partition("\n")[0]


def taken_back(call: Invocation, text: str) -> TakenBack:
    """What `COMMIT` or `A..B` names: one commit, or all that happened after A up to B.

    Raises `InvalidInput` for `A...B`, for an empty range, and where A is no ancestor of B.
    """
    repository, meant = call.repository(), call.revision_range(text)
    if not isinstance(meant, CommitRange):
        entry = repository.commit_at(meant)
        message = f'Revert "{entry.meta.subject}"\n\nThis takes back commit {entry.hash}.'
        return TakenBack(entry.hash, changes_in(repository, entry), message)
    if meant.symmetric:
        raise InvalidInput(f"{text}: a range to take back has two dots: A..B is all that happened after A up to B")
    first, last = (repository.resolve(side).hash for side in (meant.start, meant.end))
    if first == last:
        raise InvalidInput(f"{text}: nothing happened after {meant.start} up to {meant.end}")
    if not repository.is_ancestor(first, last):
        raise InvalidInput(f"{text}: {meant.start} is no ancestor of {meant.end}; A..B takes back all that happened after A up to B")
    return TakenBack(last, changes_of(repository.diff(first, last)), "".join(_about(repository, meant, text)))


def _about(repository: Repository, meant: CommitRange, text: str) -> Iterator[str]:
    """A message that names each commit of a range, newest first."""
    entries = list(repository.log_excluding(meant.end, [meant.start]))
    ends = "..".join(_short(side) for side in text.split(".."))
    yield f"Revert {ends} ({len(entries)} commit{'' if len(entries) == 1 else 's'})\n"
    for entry in entries[:MOST_NAMED]:
        yield f'\nThis takes back commit {entry.hash} "{entry.meta.subject}".'
    if len(entries) > MOST_NAMED:
        yield f"\nAnd {len(entries) - MOST_NAMED} more."


def _short(revision: str) -> str:
    """A revision with a full hash abbreviated."""
    return re.sub(r"\b[0-9a-f]{13,64}\b", lambda found: found[0][:HASH_DIGITS], revision)


MOST_NAMED = 20
"""So many commits of a range are named in the message."""


def batch_of(repository: Repository, what: TakenBack, head: str, ours: Collection[ContentKey] = (), theirs: Collection[ContentKey] = ()) -> Batch:
    """The operations that take it back. Raises `InvalidInput` where there is nothing to take back."""
    touched = [key for change in what.changes for key in (change.key, change.old_key) if key]
    now = repository.contents(head, touched) if theirs else {}
    staged = inverse(what.changes, ours, theirs, now)
    if not staged:
        reason = "is taken back already" if what.changes else "changed nothing"
        raise InvalidInput(f"there is nothing to take back: commit {what.last[:12]} {reason}")
    return Batch(what.last, staged, new_request_id())


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
