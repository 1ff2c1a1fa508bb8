"""The search of a history for commits that pass a filter, a page at a time.

A page searches for a limited time. The next page continues where it has stopped, without reading
the commits before that place again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import thread_time
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR, LogEntry
from nessie_cli.repository.log_filter import SearchedCommit

SEARCH_SECONDS = 0.05
"""The processor time for which one page searches."""
MOST_HEADS = 64
"""The most heads of a place, which are in the address of a page."""
_TOKEN = re.compile(rf"([0-9]{{1,17}})\.([0-9a-f]{{64}})((?:\.[0-9a-f]{{64}}){{1,{MOST_HEADS}}})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Place(NamedTuple):
    """A place in the search of a history: behind a commit with a time and a hash.

    `heads` reach all commits of the history behind it. The first place, before all commits, has no
    time.
    """

    heads: Sequence[str]
    time: datetime | None = None
    hash: str = ""

    @property
    def token(self) -> str:
        """The place as a query parameter."""
        assert self.time is not None
        return ".".join([str((self.time - _EPOCH) // _MICROSECOND), self.hash, *self.heads])

    def precedes(self, commit: SearchedCommit) -> bool:
        """Returns whether a commit is behind this place: older or, if not, with a larger hash."""
        if self.time is None or commit.time is None:
            return self.time is None
        return (commit.time, self.hash) < (self.time, commit.hash)


def place_of(token: str) -> Place | None:
    """Returns the place of a token, None for an empty one. Raises `InvalidInput`."""
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise InvalidInput("after: is not the end of a page of a filter")
    time, hash_, heads = match.groups()
    return Place(heads.split(".")[1:], _EPOCH + int(time) * _MICROSECOND, hash_)


class HistorySearch:
    """The commits of a page that pass a filter, at most `most`, and the place where it ends."""

    def __init__(self, start: Place, most: int) -> None:
        self.entries: list[LogEntry] = []
        self.searched = 0
        """The number of commits that were searched."""
        self.place = start
        self.has_more = False
        """Whether older commits can pass."""
        self.is_cut = False
        """Whether the time was over."""
        self._most = most

    def read(self, commits: Iterator[SearchedCommit]) -> None:
        """Reads commits until the page is full or its time is over."""
        start, end = self.place, thread_time() + SEARCH_SECONDS
        heads = set(start.heads)
        for commit in commits:
            if not commit.hash:
                # Commits that the index leaves out.
                continue
            is_behind = start.precedes(commit)
            is_full = is_behind and commit.entry is not None and len(self.entries) == self._most
            # Also on the way to the place: a client can send any place.
            self.is_cut = self.place != start and thread_time() > end
            self.has_more = is_full or self.is_cut
            if self.has_more:
                return
            if is_behind:
                self.searched += 1
                self.place = self.place._replace(time=commit.time, hash=commit.hash)
                if commit.entry is not None:
                    self.entries.append(commit.entry)
            if commit.parents is not None and commit.hash in heads:
                heads.remove(commit.hash)
                heads.update(parent for parent in commit.parents if parent != NO_ANCESTOR)
                if len(heads) <= MOST_HEADS:
                    # Otherwise the next page walks from earlier heads to this place.
                    self.place = self.place._replace(heads=tuple(heads))
