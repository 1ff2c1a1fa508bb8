"""The changes between two commits, in memory that does not grow with all contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from nessie_cli.inspection.changes import ChangeKind, ContentChange, changes_of, kind_of
from nessie_cli.model import Content, ContentKey, DiffEntry, KeyRange
from nessie_cli.repository.reader import ALL_KEYS, ReadableRepository
from nessie_cli.revisions import Revision, RevisionRange

FEW = 10_000
"""Up to this number of differences are kept in memory, and read only once."""

Read = Callable[[], Iterator[DiffEntry]]
"""A function that reads all differences from the beginning."""


def ends_of(repository: ReadableRepository, compared: RevisionRange) -> tuple[Revision, Revision]:
    """Returns the revisions that a range compares: `A...B` begins at the merge base."""
    if compared.symmetric:
        base = repository.merge_base(compared.start, compared.end)
        return Revision(None, base), compared.end
    return compared.start, compared.end


class FirstChanges(NamedTuple):
    """The first changes between two states, and whether there are more."""

    changes: Sequence[ContentChange]
    is_cut: bool


def first_changes(
    repository: ReadableRepository, before: str, after: str, most: int, keys: KeyRange = ALL_KEYS
) -> FirstChanges:
    """Returns the changes among the first `most` differences of the commits with two hashes.

    If there are more, a rename to or from one of these is a creation or a deletion.
    """
    # As a text, a hash would be looked up among the names of references first.
    differences = repository.diff(Revision(None, before), Revision(None, after), keys)
    entries = list(islice(differences, most + 1))
    return FirstChanges(changes_of(entries[:most]), len(entries) > most)


def changes_between(
    repository: ReadableRepository, before: str, after: str, prefixes: Iterable[ContentKey] = ()
) -> Iterator[ContentChange]:
    """Yields the changes between the commits with two hashes, at or below the prefixes.

    They are read while they are consumed.
    """
    start, end = Revision(None, before), Revision(None, after)
    ranges = [KeyRange(prefix=prefix) for prefix in _outermost(prefixes)] or [ALL_KEYS]

    def read() -> Iterator[DiffEntry]:
        return (entry for keys in ranges for entry in repository.diff(start, end, keys))

    def content_before(key: ContentKey) -> Content | None:
        return repository.contents(start, [key]).get(key)

    return _with_renames(read, content_before)


def _outermost(prefixes: Iterable[ContentKey]) -> list[ContentKey]:
    """Returns the prefixes in order, without those below another one."""
    outermost: list[ContentKey] = []
    for prefix in sorted(set(prefixes)):
        if not any(prefix.starts_with(outer) for outer in outermost):
            outermost.append(prefix)
    return outermost


def _with_renames(
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
    return kind_of(entry), (content.id if content else None) or ""
