"""Walks over all parents on the client, by commit time. A server lists first parents only.

Fetches pages of merge parents when the walk arrives at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

from nessie_cli.errors import StoreUnavailable
from nessie_cli.model import NO_ANCESTOR, AheadBehind, LogEntry
from nessie_cli.repository.bounded_cache import BoundedCache
from nessie_cli.repository.remote.history import log_page
from nessie_cli.repository.remote.session import MOST_COMMITS, PAGE, RestSession

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_BOTH = 3
_FIRST_PAGE = 50
"""Commits in the first page of a walk: most walks end within it, `log -n 20` for example."""


class Ancestry:
    """The commits of a server as a graph."""

    def __init__(self, session: RestSession, *, operations: bool = False) -> None:
        self._session = session
        self._operations = operations
        # Commits with operations can be large; they are dropped with this object.
        self._commits: BoundedCache[str, LogEntry] = (
            BoundedCache(MOST_COMMITS) if operations else session.commits
        )
        self._page = _FIRST_PAGE

    def commit(self, hash_: str) -> LogEntry:
        """Returns a commit. Fetches a page of its first parents if it is not cached."""
        entry = self._commits.get(hash_)
        if entry is None:
            page = {
                listed.hash: listed
                for listed in log_page(
                    self._session, hash_, self._page, operations=self._operations
                )
            }
            self._page = PAGE
            for listed in page.values():
                self._commits[listed.hash] = listed
            entry = page[hash_]
        return entry

    def first_parents(self, hash_: str) -> Iterator[str]:
        """Yields the hashes of a commit and its first parents, without the empty history.

        Raises `StoreUnavailable` if the server's commits are a cycle.
        """
        seen: set[str] = set()
        while hash_ != NO_ANCESTOR:
            if hash_ in seen:
                raise StoreUnavailable(
                    f"server {self._session.transport.url}: the commit {hash_} is its own ancestor"
                )
            seen.add(hash_)
            yield hash_
            hash_ = self.commit(hash_).parent

    def parents(self, hash_: str) -> list[str]:
        """Returns all parents of a commit but the empty history."""
        entry = self.commit(hash_)
        return [
            parent for parent in (entry.meta.parents or (entry.parent,)) if parent != NO_ANCESTOR
        ]

    def reachable(self, starts: Sequence[str], exclude: Sequence[str]) -> Iterator[LogEntry]:
        """Yields commits that `starts` reach over all parents, without those of `exclude`."""
        hidden = set(exclude) - {NO_ANCESTOR}
        queue = _ByTime(self, (set(starts) | hidden) - {NO_ANCESTOR})
        seen = set(queue.ages)
        visible = len(seen - hidden)
        while visible:
            hash_ = queue.pop()
            if hash_ not in hidden:
                visible -= 1
                yield self.commit(hash_)
            for parent in self.parents(hash_):
                if hash_ in hidden and parent not in hidden:
                    hidden.add(parent)
                    visible -= parent in seen
                if parent not in seen:
                    seen.add(parent)
                    visible += hash_ not in hidden
                    queue.push(parent, hash_)

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Returns whether a commit is reachable from another one over all parents."""
        if ancestor in (NO_ANCESTOR, descendant):
            return True
        clock_error = self._session.configuration.clock_error
        oldest = (self.commit(ancestor).meta.commit_time or _BEGINNING) - clock_error
        for entry in self.reachable([descendant], []):
            if entry.hash == ancestor:
                return True
            if (entry.meta.commit_time or oldest) < oldest:
                return False
        return False

    def merge_base(self, a: str, b: str) -> str:
        """Returns the newest commit reachable from both, or the no-ancestor hash."""
        sides = {a: 1}
        sides[b] = sides.get(b, 0) | 2
        queue = _ByTime(self, set(sides) - {NO_ANCESTOR})
        while queue:
            hash_ = queue.pop()
            if sides[hash_] == _BOTH:
                return hash_
            for parent in self.parents(hash_):
                reached = sides.get(parent, 0) | sides[hash_]
                if reached != sides.get(parent):
                    # Also if it was visited before its child: a clock was wrong.
                    sides[parent] = reached
                    queue.push(parent, hash_)
        return NO_ANCESTOR

    def ahead_behind(self, of: str, base: str) -> AheadBehind:
        """Returns distances from the newest commit that both have along first parents."""
        if base == NO_ANCESTOR != of and (height := self.commit(of).height):
            return AheadBehind(height, 0, NO_ANCESTOR)
        walks = (self.first_parents(of), self.first_parents(base))
        distances: tuple[dict[str, int], dict[str, int]] = ({}, {})
        unfinished = [0, 1]
        while unfinished:
            for side in list(unfinished):
                hash_ = next(walks[side], None)
                if hash_ is None:
                    unfinished.remove(side)
                    continue
                distances[side][hash_] = len(distances[side])
                if hash_ in distances[1 - side]:
                    return AheadBehind(distances[0][hash_], distances[1][hash_], hash_)
        return AheadBehind(len(distances[0]), len(distances[1]), NO_ANCESTOR)


class _ByTime:
    """A queue of commits, newest first.

    A parent comes after its child, even if both have the same time.
    """

    def __init__(self, ancestry: Ancestry, starts: set[str]) -> None:
        self._ancestry = ancestry
        self._queue: list[tuple[timedelta, str]] = []
        self.ages: dict[str, timedelta] = {}
        for hash_ in starts:
            self.push(hash_)

    def push(self, hash_: str, child: str | None = None) -> None:
        """Adds a commit."""
        age = _BEGINNING - (self._ancestry.commit(hash_).meta.commit_time or _BEGINNING)
        self.ages[hash_] = age if child is None else max(age, self.ages[child] + _TICK)
        heappush(self._queue, (self.ages[hash_], hash_))

    def pop(self) -> str:
        """Removes and returns the newest one."""
        return heappop(self._queue)[1]

    def __bool__(self) -> bool:
        return bool(self._queue)
