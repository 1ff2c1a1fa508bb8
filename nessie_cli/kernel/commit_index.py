"""The commit index: finds the commits that changed a key, and merges, without a walk.

A commit is stored with one index term for each key that it has an operation on, 8 bytes of the
key's hash. A term is a hint: the commit that it leads to is checked. A commit of more than
`INDEXED_OPERATIONS` operations has one term for all of them instead. A commit with merge parents
has one more term.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from heapq import merge
from typing import Any

from nessie_cli.kernel.commits import operations_on
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit
from nessie_cli.kernel.history import ancestor_at
from nessie_cli.kernel.objects import Objects

IndexLookup = Callable[[bytes, int | None, int], list[tuple[int, Id]]]
"""Looks up a term: (term, numbers below this or None, limit) -> commits, last written first."""

INDEXED_OPERATIONS = 1000
LARGE_COMMIT = bytes(8)
"""The term of a commit of more operations than `INDEXED_OPERATIONS`."""

MERGE_COMMIT = bytes(7) + b"\x01"
"""The term of a commit with merge parents."""

_PAGE, _LONGEST_PAGE = 16, 1024
_FIRST = 2
"""The size of the first page: most callers need only the last commit of a key."""


@cache
def _hasher() -> Any:
    try:
        # hashlib loads OpenSSL, which a command that only reads does not need.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b(digest_size=8, person=b"nessie key")


def term_of(key: bytes) -> bytes:
    """Returns the term of commits with an operation on a key."""
    hasher = _hasher().copy()
    hasher.update(key)
    digest: bytes = hasher.digest()
    return digest


def terms_of(keys: Collection[bytes], parents: Sequence[Id]) -> tuple[bytes, ...]:
    """Returns the terms of a commit with operations on these keys and with these parents."""
    of_keys = (LARGE_COMMIT,) if len(keys) > INDEXED_OPERATIONS else tuple(map(term_of, keys))
    return (*of_keys, MERGE_COMMIT) if len(parents) > 1 else of_keys


def commits_of_key(
    objects: Objects, lookup: IndexLookup, head: Id, key: bytes
) -> Iterator[tuple[Id, StoredCommit]]:
    """Yields the commits with an operation on a key, from `head` on, newest first.

    O(log commits) for each commit that has the term, including those elsewhere in history.
    """
    candidates = merge(
        *(indexed(lookup, term, _FIRST) for term in (term_of(key), LARGE_COMMIT)), reverse=True
    )
    for _, id_ in candidates:
        if head == NO_COMMIT:
            return
        height = objects.commit(head).height
        commit = objects.find_commit(id_)
        if (
            commit is None
            or commit.height > height
            or ancestor_at(objects, head, commit.height) != id_
        ):
            continue
        # Ancestors of a commit are always written before it, so the search only goes down.
        head = id_
        if key in operations_on(objects, commit, [key]):
            yield id_, commit


def indexed(lookup: IndexLookup, term: bytes, size: int = _PAGE) -> Iterator[tuple[int, Id]]:
    """Yields the commits with a term, each with its number, last written first.

    Reads pages of growing size, beginning with `size`.
    """
    before = None
    while page := lookup(term, before, size):
        yield from page
        before, size = page[-1][0], min(2 * size, _LONGEST_PAGE)
