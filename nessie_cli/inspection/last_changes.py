"""Finds the commit that last changed each key, by lookups and one history walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange
from nessie_cli.model.batches import batched
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision

FEW = 16
"""Up to this number of keys are looked up one by one, because a lookup needs no walk."""
PAGE = 128
"""This number of keys is looked up before the walk, so that output begins early.

It fills more than the buffer of a pipe.
"""
MANY = 50_000
"""The maximum number of keys per walk. It limits memory in large catalogs."""


def last_changes(
    repository: ReadableRepository, at: str, keys: KeyRange
) -> Iterator[tuple[Entry, CommitMeta]]:
    """Yields entries, ascending, with the newest first-parent commit that changed each key.

    The first page is looked up. For the others the history is walked until all but a few are known.
    Costs O(log commits) for each lookup, and O(keys + commits walked) for each `MANY` keys.
    """
    entries = iter(repository.entries(at, keys))
    # As a text, a hash would be looked up among the names of references each time.
    commit = Revision(None, at)
    # For a server, one request for many keys is faster than one per key.
    for entry in islice(entries, 0 if repository.is_remote else PAGE):
        if (meta := repository.last_change(commit, entry.key)) is not None:
            yield entry, meta
    for batch in batched(entries, MANY):
        yield from _walked(repository, at, batch)


def _walked(
    repository: ReadableRepository, at: str, entries: Sequence[Entry]
) -> Iterator[tuple[Entry, CommitMeta]]:
    waiting = {entry.key for entry in entries}
    last: dict[ContentKey, CommitMeta] = {}
    where = at
    for entry in repository.log(at, operations=True) if len(waiting) > FEW else ():
        touched = waiting.intersection(operation.key for operation in entry.operations or ())
        last.update(dict.fromkeys(touched, entry.meta))
        waiting -= touched
        where = entry.parent
        if len(waiting) <= FEW:
            break
    for key in waiting:
        if (meta := repository.last_change(where, key)) is not None:
            last[key] = meta
    return ((entry, last[entry.key]) for entry in entries if entry.key in last)
