"""Changes between two states with renames, in memory that does not grow with all contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from nessie_cli.model import Content, ContentKey, DiffEntry
from nessie_cli.render.changes import ChangeKind, ContentChange, changes_of

FEW = 10_000
"""Up to this number of differences are kept in memory, and read only once."""

Read = Callable[[], Iterator[DiffEntry]]
"""A function that reads all differences from the beginning."""


def changes_between(
    read: Read, content_before: Callable[[ContentKey], Content | None]
) -> Iterator[ContentChange]:
    """Yields the same changes as `changes_of`, while the differences are read.

    Updates before the first creation or deletion are yielded immediately: they are not part of a
    rename. If more than `FEW` differences follow, they are read up to four times. Memory grows with
    the number of creations or deletions, whichever is smaller.
    """
    count = 0
    entries = read()
    first: list[DiffEntry] = []
    for entry in entries:
        kind, _ = _side(entry)
        if kind is not ChangeKind.UPDATED:
            first.append(entry)
            break
        count += 1
        yield ContentChange(kind, entry.key, entry.before, entry.after)
    first += islice(entries, FEW - 1)
    if len(first) < FEW:
        yield from changes_of(first)
        return
    old_keys = _renamed(read)
    for entry in islice(read(), count, None):
        kind, content_id = _side(entry)
        old_key = old_keys.get(content_id)
        if old_key is None or kind is ChangeKind.UPDATED:
            yield ContentChange(kind, entry.key, entry.before, entry.after)
        elif kind is ChangeKind.CREATED:
            yield ContentChange(
                ChangeKind.RENAMED, entry.key, content_before(old_key), entry.after, old_key
            )


def _renamed(read: Read) -> dict[str, ContentKey]:
    """Returns the old key of each content id that moved to another key."""
    counted = Counter(_side(entry)[0] for entry in read())
    if not counted[ChangeKind.CREATED] or not counted[ChangeKind.DELETED]:
        return {}
    deleted_are_few = counted[ChangeKind.DELETED] <= counted[ChangeKind.CREATED]
    few, many = (
        (ChangeKind.DELETED, ChangeKind.CREATED)
        if deleted_are_few
        else (ChangeKind.CREATED, ChangeKind.DELETED)
    )
    keys = {content_id: key for kind, content_id, key in _sides(read) if kind is few}
    partners = {
        content_id: key
        for kind, content_id, key in _sides(read)
        if kind is many and content_id in keys
    }
    return {
        content_id: keys[content_id] if deleted_are_few else key
        for content_id, key in partners.items()
    }


def _sides(read: Read) -> Iterator[tuple[ChangeKind, str, ContentKey]]:
    return ((*_side(entry), entry.key) for entry in read())


def _side(entry: DiffEntry) -> tuple[ChangeKind, str]:
    content = entry.after or entry.before
    kind = (
        ChangeKind.CREATED
        if entry.before is None
        else ChangeKind.DELETED
        if entry.after is None
        else ChangeKind.UPDATED
    )
    return kind, (content.id if content else None) or ""
