"""Statistics of a history: commits by author and day, changes by key, tables by day.

Accumulators take commits and operations. Their values can be added (`+`), so an engine can split a
history: commits anywhere, operations by key, newest first. Days are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from heapq import nsmallest
from typing import NamedTuple

from msgspec import Struct, structs

from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    DeltaLakeTable,
    Entry,
    IcebergTable,
    LogEntry,
    Namespace,
    Put,
)

TABLE_TYPES = frozenset({IcebergTable.type, DeltaLakeTable.type})
"""Types that count as tables."""


class Commits(Struct, frozen=True):
    """A number of commits, and the times of the first and the last one."""

    commits: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def __add__(self, other: Commits) -> Commits:
        """Returns the sum."""
        first_times = [time for time in (self.first, other.first) if time]
        last_times = [time for time in (self.last, other.last) if time]
        return Commits(
            self.commits + other.commits,
            min(first_times, default=None),
            max(last_times, default=None),
        )


class ChangeCounts(Struct, frozen=True):
    """Changes of keys. `tables` and `contents` are the increases; namespaces do not count."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    tables: int = 0
    contents: int = 0

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        """Returns the sum."""
        return ChangeCounts(
            *(
                mine + theirs
                for mine, theirs in zip(structs.astuple(self), structs.astuple(other), strict=True)
            )
        )


class KeyChanges(Struct, frozen=True):
    """The changes of one key. `type` is that of its newest content."""

    key: ContentKey
    type: str
    commits: int
    created: int
    updated: int
    deleted: int
    last: datetime | None = None

    @property
    def rank(self) -> tuple[int, ContentKey]:
        """Sorts the most changed keys first."""
        return -self.commits, self.key


class KeyStep(NamedTuple):
    """One operation on a key: commit, time, and type of the content (None: deleted)."""

    commit: str
    time: datetime
    type: str | None


def day_of(time: datetime) -> str:
    """Returns the day of an instant, such as `2026-11-22`."""
    return time.astimezone(UTC).date().isoformat()


class CommitCounts:
    """Counts commits by author and by day. The committer is the author if there is none."""

    def __init__(self) -> None:
        self.authors: dict[str, Commits] = {}
        self.days: dict[str, Commits] = {}

    def add(self, meta: CommitMeta) -> None:
        """Adds one commit."""
        time = time_of(meta)
        self._add(self.authors, author_of(meta), Commits(1, time, time))
        self._add(self.days, day_of(time), Commits(1, time, time))

    def add_all(self, other: CommitCounts) -> None:
        """Adds the counts of another object."""
        for author, commits in other.authors.items():
            self._add(self.authors, author, commits)
        for day, commits in other.days.items():
            self._add(self.days, day, commits)

    @staticmethod
    def _add(to: dict[str, Commits], name: str, commits: Commits) -> None:
        to[name] = to.get(name, _NO_COMMITS) + commits


_NO_COMMITS = Commits()
_NO_CHANGES = ChangeCounts()


class Churn:
    """Counts changes by key and by day.

    Operations on one key come newest first, then the content before all of them.
    """

    def __init__(self) -> None:
        self.days: dict[str, ChangeCounts] = {}
        self._keys: dict[ContentKey, _KeyHistory] = {}

    def add(self, key: ContentKey, step: KeyStep) -> None:
        """Adds an operation that is older than all others on its key so far."""
        key_history = self._keys.get(key)
        if key_history is None:
            self._keys[key] = _KeyHistory(step)
        else:
            self._happened(key_history, step.type)
            key_history.older(step)

    def __contains__(self, key: ContentKey) -> bool:
        return key in self._keys

    def end(self, before: Mapping[ContentKey, str]) -> list[KeyChanges]:
        """Returns the changes of each key. Nothing can be added afterwards.

        `before` has the types of the contents before all operations.
        """
        for key, key_history in self._keys.items():
            self._happened(key_history, before.get(key))
        return [
            key_history.changes(key, before.get(key, "")) for key, key_history in self._keys.items()
        ]

    def _happened(self, key_history: _KeyHistory, before: str | None) -> None:
        """Counts the oldest operation on a key, now that the content before it is known."""
        change = key_history.happened(before)
        day = day_of(key_history.step.time)
        self.days[day] = self.days.get(day, _NO_CHANGES) + change


class _KeyHistory:
    """A key whose history is read backwards. `step`, the oldest operation, is not counted yet.

    Its kind depends on the content before it.
    """

    __slots__ = ("commits", "created", "deleted", "last", "step", "type", "updated")

    def __init__(self, step: KeyStep) -> None:
        self.step = step
        self.last = step.time
        self.type = step.type
        self.commits = 1
        self.created = self.updated = self.deleted = 0

    def older(self, step: KeyStep) -> None:
        self.commits += step.commit != self.step.commit
        self.type = self.type or step.type
        self.step = step

    def happened(self, before: str | None) -> ChangeCounts:
        after = self.step.type
        created, updated, deleted = (
            int(after is not None and before is None),
            int(after is not None and before is not None),
            int(after is None),
        )
        self.created += created
        self.updated += updated
        self.deleted += deleted
        tables, contents = (
            _counts(after, kinds) - _counts(before, kinds) for kinds in (_is_table, _is_content)
        )
        return ChangeCounts(created, updated, deleted, tables, contents)

    def changes(self, key: ContentKey, before: str) -> KeyChanges:
        return KeyChanges(
            key,
            self.type or before,
            self.commits,
            self.created,
            self.updated,
            self.deleted,
            self.last,
        )


def _counts(type_: str | None, kind: Callable[[str], bool]) -> int:
    return int(type_ is not None and kind(type_))


def _is_table(type_: str) -> bool:
    return type_ in TABLE_TYPES


def _is_content(type_: str) -> bool:
    return type_ != Namespace.type


class Day(Struct, frozen=True):
    """One day with commits. `tables` and `contents` are the numbers at its end."""

    day: str
    commits: int
    created: int
    updated: int
    deleted: int
    tables: int
    contents: int


class Author(Struct, frozen=True):
    """One author's commits."""

    author: str
    commits: Commits


class HistoryStatistics(Struct, frozen=True):
    """The statistics of a history.

    Authors with the most commits come first, days are in order, and `most_changed` has some of the
    changed `keys`.
    """

    commits: Commits
    changes: ChangeCounts
    authors: tuple[Author, ...]
    days: tuple[Day, ...]
    keys: int
    most_changed: tuple[KeyChanges, ...]


def history(log: Iterable[LogEntry], before: Iterable[Entry], most: int) -> HistoryStatistics:
    """Returns the statistics of commits, which come newest first with their operations.

    `before` is the state below the oldest of them. Memory: some hundred bytes for each changed key.
    """
    count, churn = CommitCounts(), Churn()
    for entry in log:
        count.add(entry.meta)
        for key, step in steps_of(entry):
            churn.add(key, step)
    start, types = _NO_CHANGES, {}
    for entry_before in before:
        start += there_is(entry_before.type)
        if entry_before.key in churn:
            types[entry_before.key] = entry_before.type
    keys = churn.end(types)
    return assembled(count, churn.days, start, KeyList(len(keys), keys), most)


def steps_of(entry: LogEntry) -> Iterator[tuple[ContentKey, KeyStep]]:
    """Yields the operations of a commit, newest first."""
    time = time_of(entry.meta)
    # Deletions come first in a commit: a key that is created again was deleted before.
    for operation in reversed(entry.operations or ()):
        yield (
            operation.key,
            KeyStep(
                entry.hash,
                time,
                operation.content.type_name if isinstance(operation, Put) else None,
            ),
        )


class KeyList(NamedTuple):
    """The number of changed keys, and the most changed ones."""

    number: int
    changes: Iterable[KeyChanges]


def assembled(
    count: CommitCounts,
    days: Mapping[str, ChangeCounts],
    start: ChangeCounts,
    keys: KeyList,
    most: int,
) -> HistoryStatistics:
    """Returns the statistics of counts. `start` has the numbers of tables and contents before."""
    day_rows, running_total = [], start
    for day in sorted({*count.days, *days}):
        change = days.get(day, _NO_CHANGES)
        running_total += change
        commits = count.days.get(day, _NO_COMMITS).commits
        day_rows.append(
            Day(
                day,
                commits,
                change.created,
                change.updated,
                change.deleted,
                running_total.tables,
                running_total.contents,
            )
        )
    authors = sorted(
        (Author(name, commits) for name, commits in count.authors.items()),
        key=lambda author: (-author.commits.commits, author.author),
    )
    return HistoryStatistics(
        commits=sum(count.days.values(), _NO_COMMITS),
        changes=sum(days.values(), _NO_CHANGES),
        authors=tuple(authors),
        days=tuple(day_rows),
        keys=keys.number,
        most_changed=tuple(nsmallest(most, keys.changes, key=lambda change: change.rank)),
    )


def there_is(type_: str) -> ChangeCounts:
    """Returns what a content of a type adds to the numbers of a state."""
    return ChangeCounts(tables=_is_table(type_), contents=_is_content(type_))


def author_of(meta: CommitMeta) -> str:
    """Returns the author of a commit."""
    return meta.author or meta.committer or ""


def time_of(meta: CommitMeta) -> datetime:
    """Returns the time of a commit, 1970 if a server does not return it."""
    return meta.commit_time or _EPOCH


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
