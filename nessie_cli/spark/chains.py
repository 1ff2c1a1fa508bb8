"""Splits the histories of several references into disjoint segments.

So each commit is read once. First parents form a forest. A chain is a path from a head down to a
commit of an earlier head. Heads that fork from a chain at the same commit, by the same child, are
compared only with each other. So each head costs a few requests of O(log commits), instead of each
pair of heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nessie_cli.model import NO_ANCESTOR, Reference
from nessie_cli.repository.base import Repository


class Chain(Struct, frozen=True):
    """`count` first parents of `head`, above `floor`. `reference` is None for a bare hash."""

    reference: str | None
    head: str
    floor: str
    count: int


class Segment(Struct, frozen=True):
    """A segment of a chain: `count` commits from `start` down."""

    reference: str | None
    start: str
    count: int


def chains(
    repository: Repository, heads: Sequence[Reference], hidden: Sequence[str] = ()
) -> Iterator[Chain]:
    """Returns the first parents of each head without those of earlier heads and `hidden` hashes."""
    first = [_Head(None, hash_, shown=False) for hash_ in dict.fromkeys(hidden)]
    first += [_Head(head.name or None, head.hash, shown=True) for head in heads]
    waiting = [(NO_ANCESTOR, [head for head in first if head.hash != NO_ANCESTOR])]
    while waiting:
        floor, group = waiting.pop()
        if not group:
            continue
        pivot, *others = group
        if pivot.shown:
            count = repository.ahead_behind(_at(pivot.hash), _at(floor)).ahead
            if count:
                yield Chain(pivot.reference, pivot.hash, floor, count)
        waiting += _forks(repository, pivot, others)


class _Head(Struct, frozen=True):
    reference: str | None
    hash: str
    shown: bool


def _forks(
    repository: Repository, pivot: _Head, others: Sequence[_Head]
) -> list[tuple[str, list[_Head]]]:
    """Returns the heads that fork from a chain, by the fork commit and its child."""
    groups: dict[tuple[str, str], list[_Head]] = {}
    for other in others:
        apart = repository.ahead_behind(_at(other.hash), _at(pivot.hash))
        if apart.ahead:
            child = (
                repository.resolve(f"{_at(other.hash)}~{apart.ahead - 1}").hash
                if apart.ahead > 1
                else other.hash
            )
            groups.setdefault((apart.common_ancestor, child), []).append(other)
    return [(floor, group) for (floor, _), group in reversed(groups.items())]


def _at(hash_: str) -> str:
    return f"@{hash_}"


def segments(repository: Repository, chain: Chain, size: int) -> Iterator[Segment]:
    """Splits a chain into segments of at most `size` commits, newest first.

    Cost: O(log commits) for the start of each segment.
    """
    for first in range(0, chain.count, size):
        start = repository.resolve(f"{_at(chain.head)}~{first}").hash if first else chain.head
        yield Segment(chain.reference, start, min(size, chain.count - first))
