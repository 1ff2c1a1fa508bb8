"""Walks through history and filters of their commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from msgspec import Struct

from nessie_cli.model import NO_ANCESTOR, ContentKey, LogEntry
from nessie_cli.revisions import Revision, RevisionRange

T = TypeVar("T")


class SearchedCommit(NamedTuple):
    """A commit that a search has read.

    `entry` is None if it does not pass the filter. `parents` are None if the search does not go on
    to them, but to the next commit of an index. The hash is empty for commits that the search
    leaves out there.
    """

    time: datetime | None
    hash: str
    parents: Sequence[str] | None
    entry: LogEntry | None


class CommitForm(NamedTuple, Generic[T]):
    """How the conditions of a filter read a commit of type `T`.

    `time` is the commit time, None if it is unknown, in the unit of `bound`. `touches` returns a
    test whether a commit has an operation on or below one of some keys.
    """

    authors: Callable[[T], Sequence[str]]
    committer: Callable[[T], str]
    message: Callable[[T], str]
    parents: Callable[[T], Sequence[Any]]
    time: Callable[[T], Any]
    bound: Callable[[datetime], Any]
    touches: Callable[[Sequence[ContentKey]], Callable[[T], bool]]


class TextSearch(Protocol):
    """A search in texts, such as a compiled pattern."""

    def search(self, text: str, /) -> object:
        """Returns None if there is no match in a text."""


class PlainText(NamedTuple):
    """A search for a text in any case.

    Its time is linear. That of a pattern is not, and no other thread runs while it searches.
    """

    text: str

    def search(self, text: str, /) -> object:
        """Returns None if a text does not contain this one."""
        return self.text.casefold() in text.casefold() or None


class LogFilter(Struct, frozen=True):
    """Conditions that commits must meet. An empty field matches all.

    An author must match one of `authors` (the committer, if a commit names no author), the
    committer one of `committers`, the message `message`; patterns match anywhere in the text. The
    commit time is between `since` and `until`, inclusive. `merges` selects only merges (True) or
    only other commits (False). `keys` selects commits with an operation on or below one of these
    keys. `skip` skips the first commits that pass.
    """

    authors: tuple[TextSearch, ...] = ()
    committers: tuple[TextSearch, ...] = ()
    message: TextSearch | None = None
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
    merge parents; a range then ends at the first commit that `exclude` reaches. With `heads`, which
    are full hashes of ancestors of `start`, the walk begins at these commits instead.
    """

    start: str | Revision | None
    exclude: str | Revision | None = None
    symmetric: bool = False
    first_parent: bool = False
    heads: tuple[str, ...] = ()

    @classmethod
    def of(cls, meant: Revision | RevisionRange | None, *, first_parent: bool = False) -> Self:
        """Returns the walk over a range or the history of a revision.

        None means all branches and tags.
        """
        if isinstance(meant, RevisionRange):
            return cls(meant.end, meant.start, meant.symmetric, first_parent)
        return cls(meant, first_parent=first_parent)


def tests_of(commit_filter: LogFilter, form: CommitForm[T]) -> Iterator[Callable[[T], bool]]:
    """Returns the conditions of a filter but `skip` as tests."""
    authors, committer, message, parents, time, *_ = form
    if commit_filter.since is not None:
        since = form.bound(commit_filter.since)
        yield lambda commit: (made := time(commit)) is not None and made >= since
    if commit_filter.until is not None:
        until = form.bound(commit_filter.until)
        yield lambda commit: (made := time(commit)) is not None and made <= until
    if commit_filter.merges is not None:
        yield lambda commit: (len(parents(commit)) > 1) == commit_filter.merges
    if commit_filter.authors:
        is_author = _any_of(commit_filter.authors)
        yield lambda commit: any(map(is_author, authors(commit) or (committer(commit),)))
    if commit_filter.committers:
        is_committer = _any_of(commit_filter.committers)
        yield lambda commit: is_committer(committer(commit))
    if commit_filter.message is not None:
        of_message = commit_filter.message.search
        yield lambda commit: of_message(message(commit)) is not None
    if commit_filter.keys:
        yield form.touches(commit_filter.keys)


def _any_of(patterns: Sequence[TextSearch]) -> Callable[[str], bool]:
    """Returns a test whether a name matches a pattern. Results are cached by name."""
    return lru_cache(4096)(lambda name: any(pattern.search(name) for pattern in patterns))


ENTRIES = CommitForm[LogEntry](
    authors=lambda entry: entry.meta.authors,
    committer=lambda entry: entry.meta.committer or "",
    message=lambda entry: entry.meta.message,
    parents=lambda entry: entry.meta.parents,
    time=lambda entry: entry.meta.commit_time,
    bound=lambda when: when,
    touches=lambda keys: (
        lambda entry: any(
            operation.key.starts_with(key) for operation in entry.operations or () for key in keys
        )
    ),
)
"""Entries of a log. The condition `keys` needs their operations."""


def searched(entries: Iterable[LogEntry], commit_filter: LogFilter) -> Iterator[SearchedCommit]:
    """Yields the commits with the entries that pass a filter."""
    tests, skip = list(tests_of(commit_filter, ENTRIES)), commit_filter.skip
    for entry in entries:
        passed = all(test(entry) for test in tests)
        chosen = passed and skip == 0
        skip -= passed and not chosen
        meta = entry.meta
        yield SearchedCommit(meta.commit_time, entry.hash, meta.parents, entry if chosen else None)


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
