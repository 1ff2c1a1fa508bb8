"""Finds the commit that changed each key last: a first page key by key, then one walk of the history for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

FEW = 16
"""So many keys, or fewer, are looked up one by one: the store finds the last commit of a key without a walk."""
PAGE = 128
"""So many keys are looked up one by one at the beginning, so that whoever reads them does not wait for the walk: more than fill a pipe at once."""
MANY = 50_000
"""So many keys at most share one walk: what is kept in memory does not grow with the catalog."""


def last_changes(
    repository: Repository, at: str, keys: KeyRange
) -> Iterator[tuple[Entry, CommitMeta]]:
    """The entries of a state, ascending, each with the newest commit along first parents that has an operation on its key.

    The first page is looked up; for the others history is walked until all but a few are found. Cost O(log commits) for each key that is looked up,
    and O(keys + commits walked), one walk for every `MANY` keys.
    """
    entries = iter(repository.entries(at, keys))
    # As a text it would be looked for among the names each time.
    commit = Revision(None, at)
    # A server is better asked once for many keys than once for each.
    for entry in islice(entries, 0 if repository.url.startswith("http") else PAGE):
        if (meta := repository.last_change(commit, entry.key)) is not None:
            yield entry, meta
    while some := list(islice(entries, MANY)):
        yield from _walked(repository, at, some)


def _walked(
    repository: Repository, at: str, entries: Sequence[Entry]
) -> Iterator[tuple[Entry, CommitMeta]]:
    waiting = {entry.key for entry in entries}
    found: dict[ContentKey, CommitMeta] = {}
    where = at
    for entry in repository.log(at, operations=True) if len(waiting) > FEW else ():
        touched = waiting.intersection(operation.key for operation in entry.operations or ())
        found.update(dict.fromkeys(touched, entry.meta))
        waiting -= touched
        where = entry.parent
        if len(waiting) <= FEW:
            break
    for key in waiting:
        if (meta := repository.last_change(where, key)) is not None:
            found[key] = meta
    return ((entry, found[entry.key]) for entry in entries if entry.key in found)
