"""The commits that touched one key, and those that merge, found without walking history.

A commit is stored with a mark for each key that it has an operation on, a few bytes of the key's hash, and the store finds objects by their marks. A
mark is a hint: whatever it leads to is looked at. A commit of very many operations carries one mark that says so instead; a commit with
merge parents carries one more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from heapq import merge
from typing import Any

from nessie_cli.kernel.commits import operations_on
from nessie_cli.kernel.forms import NO_COMMIT, Commit, Id
from nessie_cli.kernel.history import ancestor_at
from nessie_cli.kernel.objects import Objects

FindMarked = Callable[[bytes, int | None, int], list[tuple[int, Id]]]
"""Of a store: (mark, numbers below this or None, limit) to objects, the last written first."""

MARKED_OPERATIONS = 1000
LARGE = bytes(8)
"""The mark of a commit of more operations than `MARKED_OPERATIONS`."""

MERGE = bytes(7) + b"\x01"
"""The mark of a commit with merge parents."""

_PAGE, _LONGEST_PAGE = 16, 1024
_FIRST = 2
"""Of a key mostly the last commit alone is asked for."""


@cache
def _hasher() -> Any:
    try:
        # hashlib loads OpenSSL; a command that only reads does without.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b(digest_size=8, person=b"nessie key")


def mark_of(key: bytes) -> bytes:
    """The mark of commits that have an operation on a key."""
    hasher = _hasher().copy()
    hasher.update(key)
    digest: bytes = hasher.digest()
    return digest


def marks_of(keys: Collection[bytes], parents: Sequence[Id]) -> tuple[bytes, ...]:
    """The marks of a commit with operations on these keys and with these parents."""
    of_keys = (LARGE,) if len(keys) > MARKED_OPERATIONS else tuple(map(mark_of, keys))
    return (*of_keys, MERGE) if len(parents) > 1 else of_keys


def touching(objects: Objects, find_marked: FindMarked, head: Id, key: bytes) -> Iterator[tuple[Id, Commit]]:
    """The commits with an operation on a key, from `head` on along first parents, newest first.

    O(log commits) for each that is found, and for each that has the mark but lies elsewhere in history.
    """
    candidates = merge(*(marked(find_marked, mark, _FIRST) for mark in (mark_of(key), LARGE)), reverse=True)
    for _, id_ in candidates:
        if head == NO_COMMIT:
            return
        height = objects.commit(head).height
        commit = objects.find_commit(id_)
        if commit is None or commit.height > height or ancestor_at(objects, head, commit.height) != id_:
            continue
        # Ancestors of a commit are always written before it, so the search never has to go up again.
        head = id_
        if key in operations_on(objects, commit, [key]):
            yield id_, commit


def marked(find_marked: FindMarked, mark: bytes, size: int = _PAGE) -> Iterator[tuple[int, Id]]:
    """The objects with a mark, each with its number, the last written first, read as they are consumed: at first `size` of them."""
    before = None
    while page := find_marked(mark, before, size):
        yield from page
        before, size = page[-1][0], min(2 * size, _LONGEST_PAGE)
