"""Walks through history and filters of their commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from re import Pattern

from msgspec import Struct

from nessie_cli.model import NO_ANCESTOR, ContentKey, LogEntry
from nessie_cli.revisions import Revision

Test = Callable[[LogEntry], bool]


class LogFilter(Struct, frozen=True):
    """Conditions that commits must meet. An empty field matches all.

    An author must match one of `authors` (the committer, if a commit names no author), the
    committer one of `committers`, the message `message`; patterns match anywhere in the text. The
    commit time is between `since` and `until`, inclusive. `merges` selects only merges (True) or
    only other commits (False). `keys` selects commits with an operation on or below one of these
    keys. `skip` skips the first commits that pass.
    """

    authors: tuple[Pattern[str], ...] = ()
    committers: tuple[Pattern[str], ...] = ()
    message: Pattern[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    merges: bool | None = None
    keys: tuple[ContentKey, ...] = ()
    skip: int = 0


ALL_COMMITS = LogFilter()


class Walk(Struct, frozen=True):
    """The commits that `start` reaches but `exclude` does not.

    If `start` is None, the walk begins at all branches and tags, without `exclude`. `symmetric`
    adds the commits that `exclude` reaches and `start` does not. `first_parent` does not follow
    merge parents; a range then ends at the first commit that `exclude` reaches.
    """

    start: str | Revision | None
    exclude: str | Revision | None = None
    symmetric: bool = False
    first_parent: bool = False


def tests_of(commit_filter: LogFilter) -> Iterator[Test]:
    """Returns the conditions of a filter but `skip` as tests.

    `keys` needs entries with operations.
    """
    if (since := commit_filter.since) is not None:
        yield lambda entry: made_since(entry, since)
    if (until := commit_filter.until) is not None:
        yield lambda entry: entry.meta.commit_time is not None and entry.meta.commit_time <= until
    if commit_filter.authors:
        yield lambda entry: _any_match(
            commit_filter.authors, entry.meta.authors or (entry.meta.committer or "",)
        )
    if commit_filter.committers:
        yield lambda entry: _any_match(commit_filter.committers, (entry.meta.committer or "",))
    if (message := commit_filter.message) is not None:
        yield lambda entry: bool(message.search(entry.meta.message))
    if commit_filter.keys:
        yield lambda entry: any(
            operation.key.starts_with(key)
            for operation in entry.operations or ()
            for key in commit_filter.keys
        )
    if commit_filter.merges is not None:
        yield lambda entry: (len(entry.meta.parents) > 1) == commit_filter.merges


def _any_match(patterns: Iterable[Pattern[str]], names: Iterable[str]) -> bool:
    names = tuple(names)
    return any(pattern.search(name) for pattern in patterns for name in names)


def made_since(entry: LogEntry, when: datetime) -> bool:
    """Returns whether a commit was made at this time or later."""
    return entry.meta.commit_time is not None and entry.meta.commit_time >= when


def filtered(entries: Iterable[LogEntry], commit_filter: LogFilter) -> Iterator[LogEntry | None]:
    """Yields the entries that pass, and None for each of the others."""
    tests, skip = list(tests_of(commit_filter)), commit_filter.skip
    for entry in entries:
        passed = all(test(entry) for test in tests)
        chosen = passed and skip == 0
        skip -= passed and not chosen
        yield entry if chosen else None


def newest_first(entry: LogEntry) -> float:
    """Returns the sort key of an entry for a log by commit time."""
    return -entry.meta.commit_time.timestamp() if entry.meta.commit_time else 0.0


def reachable(
    heads: Iterable[str], read: Callable[[str], LogEntry], *, first_parent: bool
) -> Iterator[LogEntry]:
    """Yields the commits reachable from any of these hashes, newest first, each once.

    Cost: one `read` per head and per consumed commit.
    """
    waiting: list[tuple[float, int, LogEntry]] = []
    seen = {NO_ANCESTOR}
    number = count()

    def add(hashes: Iterable[str]) -> None:
        for hash_ in hashes:
            if hash_ not in seen:
                seen.add(hash_)
                entry = read(hash_)
                heappush(waiting, (newest_first(entry), next(number), entry))

    add(heads)
    while waiting:
        entry = heappop(waiting)[2]
        yield entry
        add(entry.meta.parents[:1] if first_parent else entry.meta.parents)
