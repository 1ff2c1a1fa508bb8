"""What happened to each key between two states: created, updated, deleted or renamed. A rename is one content id that left one key for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from nessie_cli.model import Content, ContentKey, DiffEntry
from nessie_cli.render.terminal import Line, Span


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


_SIGNS = {ChangeKind.CREATED: "+", ChangeKind.UPDATED: "~", ChangeKind.DELETED: "-", ChangeKind.RENAMED: ">"}


class Change(NamedTuple):
    """One content that changed. `old_key` is set for a rename; `before` or `after` is None where the content does not exist on that side."""

    kind: ChangeKind
    key: ContentKey
    before: Content | None
    after: Content | None
    old_key: ContentKey | None = None


def changes_of(entries: Iterable[DiffEntry]) -> list[Change]:
    """Diff entries as changes, ascending by key; a deleted and a created key of one content id become one rename."""
    found = list(entries)
    left = {entry.before.id: entry for entry in found if entry.after is None and entry.before and entry.before.id}
    renamed = {e.key: left[e.after.id] for e in found if e.before is None and e.after and e.after.id in left}
    gone = {entry.key for entry in renamed.values()}
    return [_change(entry, renamed.get(entry.key)) for entry in found if entry.key not in gone]


def _change(entry: DiffEntry, old: DiffEntry | None) -> Change:
    if old:
        return Change(ChangeKind.RENAMED, entry.key, old.before, entry.after, old.key)
    kind = ChangeKind.CREATED if entry.before is None else ChangeKind.DELETED if entry.after is None else ChangeKind.UPDATED
    return Change(kind, entry.key, entry.before, entry.after)


def counts(changes: Iterable[Change]) -> str:
    """`+2 ~1 -1 >1`: how many were created, updated, deleted, renamed; what did not happen is left out, all of it is `0`."""
    return plain_counts(Counter(change.kind for change in changes))


def plain_counts(counted: Counter[ChangeKind]) -> str:
    """The text of `counts` for numbers counted elsewhere."""
    return " ".join(f"{sign}{counted[kind]}" for kind, sign in _SIGNS.items() if counted[kind]) or "0"


def count_line(changes: Sequence[Change]) -> Line:
    """The same in colour."""
    counted = Counter(change.kind for change in changes)
    spans = [Span(f"{sign}{counted[kind]} ", kind.style) for kind, sign in _SIGNS.items() if counted[kind]]
    return spans or [Span("no change", "label")]
