"""Changes of contents: those of a commit, and those between two states.

A rename is one content id that left one key for another.
"""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.model import ChangedKey, Content, ContentKey, DiffEntry, LogEntry
from nessie_cli.revisions import Revision

if TYPE_CHECKING:
    from nessie_cli.iceberg.comparison import Comparison
    from nessie_cli.repository.reader import ReadableRepository


class ChangeKind(StrEnum):
    """The kinds of changes; the values are git's letters."""

    CREATED = "A"
    UPDATED = "M"
    DELETED = "D"
    RENAMED = "R"

    @property
    def word(self) -> str:
        """The kind as a word: `created`."""
        return self.name.lower()


class ContentChange(NamedTuple):
    """A changed content. `old_key` is set for a rename; `before` or `after` is None if absent.

    `metadata` compares the metadata files of both contents, if they were read.
    """

    kind: ChangeKind
    key: ContentKey
    before: Content | None
    after: Content | None
    old_key: ContentKey | None = None
    metadata: "Comparison | None" = None

    @property
    def keys(self) -> str:
        """The key, or both keys of a rename: `old -> new`."""
        return f"{self.old_key} -> {self.key}" if self.old_key else str(self.key)

    def touches(self, keys: Collection[ContentKey]) -> bool:
        """Returns whether one of its keys is at or below one of these keys.

        Every change touches an empty list of keys.
        """
        return not keys or any(
            touched.starts_with(key)
            for key in keys
            for touched in (self.key, self.old_key)
            if touched
        )


def changes_of_commit(repository: "ReadableRepository", entry: LogEntry) -> list[ContentChange]:
    """Returns the changes of a commit since its first parent. Costs O(changes · log keys)."""
    # As a text, a hash would be looked up among the names of references first.
    return changes_of(repository.diff(Revision(None, entry.parent), Revision(None, entry.hash)))


def outline_of_commit(repository: "ReadableRepository", entry: LogEntry) -> list[ContentChange]:
    """Returns the changes of a commit without contents: their kinds and keys."""
    return outlined(repository.changed_keys(entry))


def changes_of(entries: Iterable[DiffEntry]) -> list[ContentChange]:
    """Returns diff entries as changes, ascending by key, with renames found by content id."""
    differences = list(entries)
    left = {
        entry.before.id: entry
        for entry in differences
        if entry.after is None and entry.before and entry.before.id
    }
    renamed = {
        e.key: left[e.after.id]
        for e in differences
        if e.before is None and e.after and e.after.id in left
    }
    gone = {entry.key for entry in renamed.values()}
    return [
        _change(entry, renamed.get(entry.key)) for entry in differences if entry.key not in gone
    ]


def outlined(changed: Sequence[ChangedKey]) -> list[ContentChange]:
    """Returns changes without contents from the keys that a commit changed."""
    left = {change.content_id: change for change in changed if not change.after}
    renamed = (
        {
            change.key: left[change.content_id].key
            for change in changed
            if not change.before and change.content_id in left
        }
        if left
        else {}
    )
    gone = set(renamed.values())
    return [
        ContentChange(_kind(change, renamed), change.key, None, None, renamed.get(change.key))
        for change in changed
        if change.key not in gone
    ]


def _kind(change: ChangedKey, renamed: Container[ContentKey]) -> ChangeKind:
    if change.key in renamed:
        return ChangeKind.RENAMED
    return (
        ChangeKind.CREATED
        if not change.before
        else ChangeKind.UPDATED
        if change.after
        else ChangeKind.DELETED
    )


def _change(entry: DiffEntry, old: DiffEntry | None) -> ContentChange:
    if old:
        return ContentChange(ChangeKind.RENAMED, entry.key, old.before, entry.after, old.key)
    return ContentChange(kind_of(entry), entry.key, entry.before, entry.after)


def kind_of(entry: DiffEntry) -> ChangeKind:
    """Returns whether a key was created, updated or deleted."""
    if entry.before is None:
        return ChangeKind.CREATED
    return ChangeKind.DELETED if entry.after is None else ChangeKind.UPDATED


def tally(changes: Iterable[ContentChange]) -> dict[str, int]:
    """Returns the number of contents created, updated, deleted and renamed, by these words."""
    counted = Counter(change.kind for change in changes)
    return {kind.word: counted[kind] for kind in ChangeKind}
