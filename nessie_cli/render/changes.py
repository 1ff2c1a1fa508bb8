"""Changes of keys between two states: created, updated, deleted or renamed.

A rename is one content id that left one key for another.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from nessie_cli.model import ChangedKey, Content, ContentKey, DiffEntry
from nessie_cli.render.spans import Line, Span


class ChangeKind(StrEnum):
    """The kinds of changes; the values are git's letters."""

    CREATED = "A"
    UPDATED = "M"
    DELETED = "D"
    RENAMED = "R"

    @property
    def style(self) -> str:
        """The style of its spans."""
        return self.name.lower()


_SIGNS = {
    ChangeKind.CREATED: "+",
    ChangeKind.UPDATED: "~",
    ChangeKind.DELETED: "-",
    ChangeKind.RENAMED: ">",
}


class Fact(NamedTuple):
    """A difference inside a content: its kind, its name if there are several, both texts."""

    what: str
    name: str
    before: str | None
    after: str | None

    @property
    def label(self) -> str:
        """The label for the name of a field."""
        return f"{self.what} {self.name}".rstrip()


class Inside(NamedTuple):
    """The differences of a content's metadata files, or why one cannot be read."""

    facts: Sequence[Fact] = ()
    problems: Sequence[str] = ()


NOTHING_INSIDE = Inside()


class ContentChange(NamedTuple):
    """A changed content. `old_key` is set for a rename; `before` or `after` is None if absent."""

    kind: ChangeKind
    key: ContentKey
    before: Content | None
    after: Content | None
    old_key: ContentKey | None = None
    inside: Inside | None = None

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
    kind = (
        ChangeKind.CREATED
        if entry.before is None
        else ChangeKind.DELETED
        if entry.after is None
        else ChangeKind.UPDATED
    )
    return ContentChange(kind, entry.key, entry.before, entry.after)


def moved(change: ContentChange) -> str:
    """Returns the key, or both keys of a rename."""
    return f"{change.old_key} -> {change.key}" if change.old_key else str(change.key)


def tally(changes: Iterable[ContentChange]) -> dict[str, int]:
    """Returns the number of contents created, updated, deleted and renamed, by these words."""
    counted = Counter(change.kind for change in changes)
    return {kind.name.lower(): counted[kind] for kind in ChangeKind}


def count_line(changes: Iterable[ContentChange]) -> Line:
    """Returns `+2 ~1 -1 >1` for created, updated, deleted, renamed; zeros are left out."""
    counted = Counter(change.kind for change in changes)
    signed = [
        Span(f"{sign}{counted[kind]} ", kind.style)
        for kind, sign in _SIGNS.items()
        if counted[kind]
    ]
    return signed or [Span("no change", "label")]
