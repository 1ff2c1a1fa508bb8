"""What happened to each key between two states: created, updated, deleted or renamed. A rename is one content id that left one key for another."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from nessie_cli.model import ChangedKey, Content, ContentKey, DiffEntry
from nessie_cli.render.spans import Line, Span


class ChangeKind(StrEnum):
    """What happened; the values are git's letters."""

    CREATED = "A"
    UPDATED = "M"
    DELETED = "D"
    RENAMED = "R"

    @property
    def style(self) -> str:
        """The style of a span that shows it."""
        return self.name.lower()


_SIGNS = {
    ChangeKind.CREATED: "+",
    ChangeKind.UPDATED: "~",
    ChangeKind.DELETED: "-",
    ChangeKind.RENAMED: ">",
}


class Fact(NamedTuple):
    """One thing that differs inside a content: what it is, its name where there are several, its text on each side."""

    what: str
    name: str
    before: str | None
    after: str | None

    @property
    def label(self) -> str:
        """What is shown as the name of a field."""
        return f"{self.what} {self.name}".rstrip()


class Inside(NamedTuple):
    """What the metadata files of a content say about a change, and why one could not be read."""

    facts: Sequence[Fact] = ()
    problems: Sequence[str] = ()


NOTHING_INSIDE = Inside()


class Change(NamedTuple):
    """One content that changed. `old_key` is set for a rename; `before` or `after` is None where the content does not exist on that side."""

    kind: ChangeKind
    key: ContentKey
    before: Content | None
    after: Content | None
    old_key: ContentKey | None = None
    inside: Inside | None = None

    def touches(self, keys: Collection[ContentKey]) -> bool:
        """Whether one of its keys is one of these or below one. Every change touches no keys at all."""
        return not keys or any(
            touched.starts_with(key)
            for key in keys
            for touched in (self.key, self.old_key)
            if touched
        )


def changes_of(entries: Iterable[DiffEntry]) -> list[Change]:
    """Diff entries as changes, ascending by key; a deleted and a created key of one content id become one rename."""
    found = list(entries)
    left = {
        entry.before.id: entry
        for entry in found
        if entry.after is None and entry.before and entry.before.id
    }
    renamed = {
        e.key: left[e.after.id]
        for e in found
        if e.before is None and e.after and e.after.id in left
    }
    gone = {entry.key for entry in renamed.values()}
    return [_change(entry, renamed.get(entry.key)) for entry in found if entry.key not in gone]


def outlined(found: Sequence[ChangedKey]) -> list[Change]:
    """The same from what a commit changed without contents: none of these changes has any."""
    left = {change.content_id: change for change in found if not change.after}
    renamed = (
        {
            change.key: left[change.content_id].key
            for change in found
            if not change.before and change.content_id in left
        }
        if left
        else {}
    )
    gone = set(renamed.values())
    return [
        Change(_kind(change, renamed), change.key, None, None, renamed.get(change.key))
        for change in found
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


def _change(entry: DiffEntry, old: DiffEntry | None) -> Change:
    if old:
        return Change(ChangeKind.RENAMED, entry.key, old.before, entry.after, old.key)
    kind = (
        ChangeKind.CREATED
        if entry.before is None
        else ChangeKind.DELETED
        if entry.after is None
        else ChangeKind.UPDATED
    )
    return Change(kind, entry.key, entry.before, entry.after)


def moved(change: Change) -> str:
    """The key, or for a rename both keys."""
    return f"{change.old_key} -> {change.key}" if change.old_key else str(change.key)


def tally(changes: Iterable[Change]) -> dict[str, int]:
    """How many contents were created, updated, deleted and renamed, by these words."""
    counted = Counter(change.kind for change in changes)
    return {kind.name.lower(): counted[kind] for kind in ChangeKind}


def counts(changes: Iterable[Change]) -> str:
    """`+2 ~1 -1 >1`: how many were created, updated, deleted, renamed; what did not happen is left out, all of it is `0`."""
    return "".join(span.text for span in _signed(changes)).rstrip() or "0"


def count_line(changes: Iterable[Change]) -> Line:
    """The same in colour."""
    return _signed(changes) or [Span("no change", "label")]


def _signed(changes: Iterable[Change]) -> list[Span]:
    counted = Counter(change.kind for change in changes)
    return [
        Span(f"{sign}{counted[kind]} ", kind.style)
        for kind, sign in _SIGNS.items()
        if counted[kind]
    ]
