"""The history of a key: the commits that changed its content, across renames."""

from collections.abc import Iterator
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType, field, structs

from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, KeyRange, LogEntry
from nessie_cli.render.changes import ChangeKind, ContentChange
from nessie_cli.render.diffs import changed_labels
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision
from nessie_cli.wire import commits
from nessie_cli.wire.contents import AnyContent, Key, optional_content

KindOfChange = Annotated[
    str, Meta(extra_json_schema={"enum": ["CREATED", "UPDATED", "DELETED", "RENAMED"]})
]


class Moment(commits.LogEntry, kw_only=True):
    """A commit that changed a content: the key after it, the kind of change, the changed fields."""

    key: Key
    change: KindOfChange
    fields: list[str]
    before: AnyContent | None = field(name="from")
    after: AnyContent | None = field(name="to")
    renamed_from: Key | UnsetType = UNSET

    @classmethod
    def of_change(cls, entry: LogEntry, change: ContentChange) -> Self:
        """Returns the struct of a commit with its change of the content."""
        return cls(
            **structs.asdict(commits.LogEntry.of(entry)),
            key=Key.of(change.key),
            change=change.kind.name,
            fields=[label for label in changed_labels(change).split(",") if label],
            before=optional_content(change.before),
            after=optional_content(change.after),
            renamed_from=Key.of(change.old_key) if change.old_key else UNSET,
        )


def history_of(
    repository: Repository, at: str, key: ContentKey
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


def _change(repository: Repository, entry: LogEntry, key: ContentKey) -> ContentChange | None:
    """Returns the change of a key in a commit, or None if the commit did not change it."""
    # As a text, a hash would be looked up among the names of references first.
    before_it, after_it = Revision(None, entry.parent), Revision(None, entry.hash)
    found = next(iter(repository.diff(before_it, after_it, KeyRange(keys=(key,)))), None)
    if found is None:
        return None
    before, after = found.before, found.after
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
    repository: Repository, entry: LogEntry, key: ContentKey, content: Content | None, *, came: bool
) -> ContentKey | None:
    """Returns the other key of a rename in this commit: the old key if `came`, else the new one."""
    # The first commit may load many contents, and it cannot contain a rename.
    wanted = content.id if content and entry.parent != NO_ANCESTOR else None
    for item in repository.diff(entry.parent, entry.hash) if wanted else ():
        side, other = (item.before, item.after) if came else (item.after, item.before)
        if item.key != key and side and side.id == wanted and (other is None or other.id != wanted):
            return item.key
    return None
