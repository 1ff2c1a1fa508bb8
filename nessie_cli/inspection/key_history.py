"""The history of a key: the commits that changed its content, across renames."""

from collections.abc import Iterator

from nessie_cli.inspection.changes import ChangeKind, ContentChange
from nessie_cli.model import NO_ANCESTOR, ChangedKey, Content, ContentKey, KeyRange, LogEntry
from nessie_cli.repository.reader import ALL_KEYS, ReadableRepository
from nessie_cli.revisions import Revision

_FEW = 100
"""The number of keys up to which a diff of them is less work than a diff of all."""


def history_of_key(
    repository: ReadableRepository, at: str, key: ContentKey
) -> Iterator[tuple[LogEntry, ContentChange]]:
    """Yields the commits that changed a content, newest first, from `at` along first parents.

    The history continues under the earlier key of a renamed content. A key without a content at
    `at` is followed from its deletion. Earlier contents of the key are part of the history. Costs
    O(log commits) for each commit found, and a diff for each one that created or renamed the
    content.
    """
    where: str | None = at
    while where is not None:
        start, where = where, None
        for entry in repository.log_of_key(start, key):
            change = _change(repository, entry, key)
            if change is None:
                continue
            yield entry, change
            if change.old_key is not None and change.old_key != key:
                key, where = change.old_key, entry.parent
                break


def _change(
    repository: ReadableRepository, entry: LogEntry, key: ContentKey
) -> ContentChange | None:
    """Returns the change of a key in a commit, or None if the commit did not change it."""
    # As a text, a hash would be looked up among the names of references first.
    before_it, after_it = Revision(None, entry.parent), Revision(None, entry.hash)
    difference = next(iter(repository.diff(before_it, after_it, KeyRange(keys=(key,)))), None)
    if difference is None:
        return None
    before, after = difference.before, difference.after
    if after is None:
        new_key = _partner(repository, entry, key, before, came=False)
        if new_key:
            return ContentChange(ChangeKind.RENAMED, new_key, before, before, key)
        return ContentChange(ChangeKind.DELETED, key, before, None)
    if before is None or before.id != after.id:
        old_key = _partner(repository, entry, key, after, came=True)
        if old_key is not None:
            old = repository.content(entry.parent, old_key)
            return ContentChange(ChangeKind.RENAMED, key, old, after, old_key)
    return ContentChange(ChangeKind.UPDATED if before else ChangeKind.CREATED, key, before, after)


def _partner(
    repository: ReadableRepository,
    entry: LogEntry,
    key: ContentKey,
    content: Content | None,
    *,
    came: bool,
) -> ContentKey | None:
    """Returns the other key of a rename in this commit: the old key if `came`, else the new one."""
    # The first commit may load many contents, and it cannot contain a rename.
    content_id = content.id if content and entry.parent != NO_ANCESTOR else None
    # A commit can change 100,000 keys, and contents are read for few of them.
    keys = [
        change.key
        for change in (repository.changed_keys(entry) if content_id else ())
        if change.key != key and _may_have(change, content_id, before=came)
    ]
    if not keys:
        return None
    before_it, after_it = Revision(None, entry.parent), Revision(None, entry.hash)
    key_range = KeyRange(keys=tuple(keys)) if len(keys) <= _FEW else ALL_KEYS
    for item in repository.diff(before_it, after_it, key_range):
        side, other = (item.before, item.after) if came else (item.after, item.before)
        if (
            item.key != key
            and side
            and side.id == content_id
            and (other is None or other.id != content_id)
        ):
            return item.key
    return None


def _may_have(change: ChangedKey, content_id: str | None, *, before: bool) -> bool:
    """Whether a key may have a content id before the commit, or has it after the commit."""
    has_it = change.content_id == content_id
    if before:
        # The id before an update is mostly the id after it, but a key can get another content.
        return change.before and has_it != change.after
    return change.after and has_it
