"""Histories of several references cut into segments that overlap nowhere: each commit is read once, however many branches share it.

First parents make a forest. A chain is one path of it, from a head down to where an earlier head has been already. Heads that fork from a chain at
the same commit, by the same child, are compared with each other only: so it costs a few questions of O(log commits) for each head, not for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nessie_cli.model import NO_ANCESTOR, Reference
from nessie_cli.repository.base import Repository


class Chain(Struct, frozen=True):
    """The `count` commits from `head` down along first parents, above `floor`; `reference` has them first, None for a bare hash."""

    reference: str | None
    head: str
    floor: str
    count: int


class Segment(Struct, frozen=True):
    """A piece of a chain: `count` commits from `start` down."""

    reference: str | None
    start: str
    count: int


def chains(
    repository: Repository, heads: Sequence[Reference], hidden: Sequence[str] = ()
) -> Iterator[Chain]:
    """The commits of each head that neither a head before it nor one of the `hidden` hashes has along first parents."""
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
    """The heads that have commits beside a chain, by the commit where they leave it and the first one beyond."""
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
    """A chain in pieces of at most `size` commits, newest first; each start is found by jumps, O(log commits)."""
    for first in range(0, chain.count, size):
        start = repository.resolve(f"{_at(chain.head)}~{first}").hash if first else chain.head
        yield Segment(chain.reference, start, min(size, chain.count - first))
