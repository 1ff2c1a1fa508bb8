"""Ancestry on the client: commits fetched by pages along first parents, each kept; walks over all parents by commit time.

A server answers first parents only. Where merge parents count, their pages are fetched when the walk gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush

from nessie_cli.model import NO_ANCESTOR, LogEntry
from nessie_cli.repository.base import AheadBehind

FetchPage = Callable[[str, int], list[LogEntry]]
PAGE = 100
_BEGINNING = datetime.min.replace(tzinfo=UTC)


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

    def _age(self, hash_: str) -> tuple[float, str]:
        when = self.commit(hash_).meta.commit_time or _BEGINNING
        return (-when.timestamp() if when is not _BEGINNING else 0.0, hash_)

    def _parents(self, hash_: str) -> list[str]:
        entry = self.commit(hash_)
        return [parent for parent in (entry.meta.parents or (entry.parent,)) if parent != NO_ANCESTOR]

    def reachable(self, starts: Sequence[str], exclude: Sequence[str]) -> Iterator[LogEntry]:
        """Commits reachable over all parents from `starts` and from none of `exclude`, newest first, each once."""
        hidden = set(exclude) - {NO_ANCESTOR}
        seen = (set(starts) | hidden) - {NO_ANCESTOR}
        queue: list[tuple[float, str]] = []
        for hash_ in seen:
            heappush(queue, self._age(hash_))
        wanted = len(seen - hidden)
        while queue and wanted:
            _, hash_ = heappop(queue)
            if hash_ not in hidden:
                wanted -= 1
                yield self.commit(hash_)
            for parent in self._parents(hash_):
                if hash_ in hidden and parent not in hidden:
                    hidden.add(parent)
                    wanted -= parent in seen
                if parent not in seen:
                    seen.add(parent)
                    wanted += hash_ not in hidden
                    heappush(queue, self._age(parent))

    def merge_base(self, a: str, b: str) -> str:
        """The newest commit reachable from both over all parents; the no-ancestor hash where there is none."""
        sides = {a: 1}
        sides[b] = sides.get(b, 0) | 2
        queue = [self._age(hash_) for hash_ in sides if hash_ != NO_ANCESTOR]
        queue.sort()
        while queue:
            _, hash_ = heappop(queue)
            if sides[hash_] == 3:  # noqa: PLR2004 - both sides
                return hash_
            for parent in self._parents(hash_):
                if parent not in sides:
                    sides[parent] = 0
                    heappush(queue, self._age(parent))
                sides[parent] |= sides[hash_]
        return NO_ANCESTOR

    def ahead_behind(self, of: str, base: str) -> AheadBehind:
        """First-parent distances from the newest commit that both have along first parents."""
        ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        left, right = self.first_parents(of), self.first_parents(base)
        mine, other = next(left, None), next(right, None)
        while mine is not None or other is not None:
            if mine is not None:
                ours[mine] = len(ours)
                if mine in theirs:
                    return AheadBehind(ours[mine], theirs[mine], mine)
                mine = next(left, None)
            if other is not None:
                theirs[other] = len(theirs)
                if other in ours:
                    return AheadBehind(ours[other], theirs[other], other)
                other = next(right, None)
        return AheadBehind(len(ours), len(theirs), NO_ANCESTOR)
