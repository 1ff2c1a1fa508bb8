"""Ancestry on the client: commits fetched by pages along first parents, each kept; walks over all parents by commit time.

A server answers first parents only. Where merge parents count, their pages are fetched when the walk gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

from nessie_cli.model import NO_ANCESTOR, LogEntry
from nessie_cli.repository.base import AheadBehind

FetchPage = Callable[[str, int], list[LogEntry]]
PAGE = 250
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_BOTH = 3


class Ancestry:
    """The commits of a server, remembered as they are met. Commits never change, so what is remembered stays true."""

    def __init__(self, fetch: FetchPage) -> None:
        self._fetch = fetch
        self._known: dict[str, LogEntry] = {}

    def commit(self, hash_: str) -> LogEntry:
        """One commit, with the page of first parents behind it where it was not known."""
        if hash_ not in self._known:
            for entry in self._fetch(hash_, PAGE):
                self._known[entry.hash] = entry
        return self._known[hash_]

    def first_parents(self, hash_: str) -> Iterator[str]:
        """The hashes from a commit on along first parents; the empty history is not one of them."""
        while hash_ != NO_ANCESTOR:
            yield hash_
            hash_ = self.commit(hash_).parent

    def parents(self, hash_: str) -> list[str]:
        """All parents of a commit but the empty history."""
        entry = self.commit(hash_)
        return [parent for parent in (entry.meta.parents or (entry.parent,)) if parent != NO_ANCESTOR]

    def reachable(self, starts: Sequence[str], exclude: Sequence[str]) -> Iterator[LogEntry]:
        """Commits reachable over all parents from `starts` and from none of `exclude`, newest first, each once."""
        hidden = set(exclude) - {NO_ANCESTOR}
        waiting = _Waiting(self, (set(starts) | hidden) - {NO_ANCESTOR})
        seen = set(waiting.ages)
        wanted = len(seen - hidden)
        while wanted:
            hash_ = waiting.pop()
            if hash_ not in hidden:
                wanted -= 1
                yield self.commit(hash_)
            for parent in self.parents(hash_):
                if hash_ in hidden and parent not in hidden:
                    hidden.add(parent)
                    wanted -= parent in seen
                if parent not in seen:
                    seen.add(parent)
                    wanted += hash_ not in hidden
                    waiting.push(parent, hash_)

    def merge_base(self, a: str, b: str) -> str:
        """The newest commit reachable from both over all parents; the no-ancestor hash where there is none."""
        sides = {a: 1}
        sides[b] = sides.get(b, 0) | 2
        waiting = _Waiting(self, set(sides) - {NO_ANCESTOR})
        while waiting:
            hash_ = waiting.pop()
            if sides[hash_] == _BOTH:
                return hash_
            for parent in self.parents(hash_):
                if parent not in sides:
                    sides[parent] = 0
                    waiting.push(parent, hash_)
                sides[parent] |= sides[hash_]
        return NO_ANCESTOR

    def ahead_behind(self, of: str, base: str) -> AheadBehind:
        """First-parent distances from the newest commit that both have along first parents."""
        walks = (self.first_parents(of), self.first_parents(base))
        met: tuple[dict[str, int], dict[str, int]] = ({}, {})
        open_ = [0, 1]
        while open_:
            for side in list(open_):
                hash_ = next(walks[side], None)
                if hash_ is None:
                    open_.remove(side)
                    continue
                met[side][hash_] = len(met[side])
                if hash_ in met[1 - side]:
                    return AheadBehind(met[0][hash_], met[1][hash_], hash_)
        return AheadBehind(len(met[0]), len(met[1]), NO_ANCESTOR)


class _Waiting:
    """Commits to visit, the newest first. A parent comes after the child that led to it, though a server may give both one time."""

    def __init__(self, ancestry: Ancestry, starts: set[str]) -> None:
        self._ancestry = ancestry
        self._queue: list[tuple[timedelta, str]] = []
        self.ages: dict[str, timedelta] = {}
        for hash_ in starts:
            self.push(hash_)

    def push(self, hash_: str, child: str | None = None) -> None:
        """Add a commit, met for the first time."""
        age = _BEGINNING - (self._ancestry.commit(hash_).meta.commit_time or _BEGINNING)
        self.ages[hash_] = age if child is None else max(age, self.ages[child] + _TICK)
        heappush(self._queue, (self.ages[hash_], hash_))

    def pop(self) -> str:
        """The newest one."""
        return heappop(self._queue)[1]

    def __bool__(self) -> bool:
        return bool(self._queue)
