"""The history of one content: the commits that changed it, followed through renames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, KeyRange, LogEntry
from nessie_cli.render.changes import Change, ChangeKind
from nessie_cli.render.diffs import changed_labels
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision
from nessie_cli.wire.record import INLINE, NOT_JSON, OPTIONAL, Record
from nessie_cli.wire.shapes import Key


@dataclass(frozen=True)
class Moment(Record):
    """A commit that changed a content: the key that the content had after it, what happened, the names of the fields that changed."""

    entry: Annotated[LogEntry, INLINE]
    key: ContentKey
    change: Annotated[str, Literal["CREATED", "UPDATED", "DELETED", "RENAMED"]]
    fields: tuple[str, ...]
    from_: Content | None
    to: Content | None
    renamed_from: Annotated[ContentKey | None, Key, OPTIONAL]
    what: Annotated[Change, NOT_JSON]

    @classmethod
    def of(cls, entry: LogEntry, change: Change) -> "Moment":
        """Returns a commit with its change of the content."""
        labels = tuple(label for label in changed_labels(change).split(",") if label)
        kind, before, after = change.kind.name, change.before, change.after
        return cls(entry, change.key, kind, labels, before, after, change.old_key, change)


def history_of(repository: Repository, at: str, key: ContentKey) -> Iterator[Moment]:
    """Yields the commits that changed a content, newest first, from `at` along first parents.

    A content that was renamed is followed to its earlier key. A key without a content at `at` is
    followed from its deletion. Earlier contents of the key are part of the history. The cost is
    O(log commits) for each commit found, and a diff for each that created or renamed.
    """
    where: str | None = at
    while where is not None:
        start, where = where, None
        for entry in repository.log_of_key(start, key):
            change = _change(repository, entry, key)
            if change is None:
                continue
            yield Moment.of(entry, change)
            if change.old_key is not None and change.old_key != key:
                key, where = change.old_key, entry.parent
                break


def _change(repository: Repository, entry: LogEntry, key: ContentKey) -> Change | None:
    """The change of a key in a commit; None if the state before and after is the same."""
    # A text would first be looked up as the name of a reference.
    before_it, after_it = Revision(None, entry.parent), Revision(None, entry.hash)
    found = next(iter(repository.diff(before_it, after_it, KeyRange(keys=(key,)))), None)
    if found is None:
        return None
    before, after = found.before, found.after
    if after is None:
        new_key = _partner(repository, entry, key, before, came=False)
        if new_key:
            return Change(ChangeKind.RENAMED, new_key, before, before, key)
        return Change(ChangeKind.DELETED, key, before, None)
    if before is None or before.id != after.id:
        old_key = _partner(repository, entry, key, after, came=True)
        if old_key is not None:
            old = repository.content(entry.parent, old_key)
            return Change(ChangeKind.RENAMED, key, old, after, old_key)
    return Change(ChangeKind.UPDATED if before else ChangeKind.CREATED, key, before, after)


def _partner(
    repository: Repository, entry: LogEntry, key: ContentKey, content: Content | None, *, came: bool
) -> ContentKey | None:
    """The other key of a rename: the one that the content `came` from, or went to, in this commit."""
    # The first commit may be a large load, and no rename is possible in it.
    wanted = content.id if content and entry.parent != NO_ANCESTOR else None
    for item in repository.diff(entry.parent, entry.hash) if wanted else ():
        side, other = (item.before, item.after) if came else (item.after, item.before)
        if item.key != key and side and side.id == wanted and (other is None or other.id != wanted):
            return item.key
    return None
