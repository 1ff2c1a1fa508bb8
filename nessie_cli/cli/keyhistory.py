"""The history of one content: the commits that changed it, followed backwards through renames by its content id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nessie_cli.commitspec import CommitSpec
from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, KeyRange, LogEntry
from nessie_cli.render.changes import Change, ChangeKind
from nessie_cli.repository.base import Repository


class Moment(NamedTuple):
    """One commit and what it did to the content."""

    entry: LogEntry
    change: Change


def history_of(repository: Repository, at: str, key: ContentKey) -> Iterator[Moment]:
    """Newest first, from the commit `at` along first parents; a content that came from another key is followed there.

    A key that does not exist at `at` is followed from where it was deleted, or renamed away. Earlier contents that were
    dropped from the key are told as well. Cost O(log commits) for each commit that is found, and one diff for each that created or renamed.
    """
    where: str | None = at
    while where is not None:
        start, where = where, None
        for entry in repository.log_of_key(start, key):
            change = _change(repository, entry, key)
            if change is None:
                continue
            yield Moment(entry, change)
            if change.old_key is not None and change.old_key != key:
                key, where = change.old_key, entry.parent
                break


def _change(repository: Repository, entry: LogEntry, key: ContentKey) -> Change | None:
    """What a commit did to a key; None where the state before and after is the same."""
    # As texts they would be looked for among the names first.
    found = next(iter(repository.diff(CommitSpec(None, entry.parent), CommitSpec(None, entry.hash), KeyRange(keys=(key,)))), None)
    if found is None:
        return None
    before, after = found.before, found.after
    if after is None:
        new_key = _partner(repository, entry, key, before, came=False)
        return Change(ChangeKind.RENAMED, new_key, before, before, key) if new_key else Change(ChangeKind.DELETED, key, before, None)
    if before is None or before.id != after.id:
        old_key = _partner(repository, entry, key, after, came=True)
        if old_key is not None:
            return Change(ChangeKind.RENAMED, key, repository.content(entry.parent, old_key), after, old_key)
    return Change(ChangeKind.UPDATED if before else ChangeKind.CREATED, key, before, after)


def _partner(repository: Repository, entry: LogEntry, key: ContentKey, content: Content | None, *, came: bool) -> ContentKey | None:
    """The other key of a rename: the one that a content came from, or went to, in this commit."""
    # The first commit of a history may be a large load, and nothing can have been renamed in it.
    wanted = content.id if content and entry.parent != NO_ANCESTOR else None
    for item in repository.diff(entry.parent, entry.hash) if wanted else ():
        side, other = (item.before, item.after) if came else (item.after, item.before)
        if item.key != key and side and side.id == wanted and (other is None or other.id != wanted):
            return item.key
    return None
