"""What a history comes to: commits by author and day, what became of each key, how many tables there were in the end of each day.

Accumulators take commits and operations and give values; those of several of them are added up (`+`), so an engine can cut a history as it
likes: commits anywhere, operations so that those on one key are together, newest first. Days are those of UTC.
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
"""Contents that are counted as tables."""


class Commits(Struct, frozen=True):
    """How many commits, and when the first and the last of them were made."""

    commits: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def __add__(self, other: Commits) -> Commits:
        """Those of both."""
        firsts = [time for time in (self.first, other.first) if time]
        lasts = [time for time in (self.last, other.last) if time]
        return Commits(
            self.commits + other.commits, min(firsts, default=None), max(lasts, default=None)
        )


class Changes(Struct, frozen=True):
    """What became of keys; `tables` and `contents` are how many more there are than before (namespaces are no contents here)."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    tables: int = 0
    contents: int = 0

    def __add__(self, other: Changes) -> Changes:
        """Both."""
        return Changes(
            *(
                mine + theirs
                for mine, theirs in zip(structs.astuple(self), structs.astuple(other), strict=True)
            )
        )


class KeyChanges(Struct, frozen=True):
    """What became of one key. `type` is that of its newest content."""

    key: ContentKey
    type: str
    commits: int
    created: int
    updated: int
    deleted: int
    last: datetime | None = None

    @property
    def rank(self) -> tuple[int, ContentKey]:
        """The most changed go first."""
        return -self.commits, self.key


class Step(NamedTuple):
    """One operation on a key: by which commit, when, and the type of what was put; None for a deletion."""

    commit: str
    time: datetime
    type: str | None


def day_of(time: datetime) -> str:
    """The day of an instant, `2026-11-22`."""
    return time.astimezone(UTC).date().isoformat()


class CommitCount:
    """Commits by author and by day. A commit that names no author is its committer's."""

    def __init__(self) -> None:
        self.authors: dict[str, Commits] = {}
        self.days: dict[str, Commits] = {}

    def add(self, meta: CommitMeta) -> None:
        """Count one commit."""
        time = time_of(meta)
        self._add(self.authors, author_of(meta), Commits(1, time, time))
        self._add(self.days, day_of(time), Commits(1, time, time))

    def add_all(self, other: CommitCount) -> None:
        """Count those of another count as well."""
        for author, commits in other.authors.items():
            self._add(self.authors, author, commits)
        for day, commits in other.days.items():
            self._add(self.days, day, commits)

    @staticmethod
    def _add(to: dict[str, Commits], name: str, commits: Commits) -> None:
        to[name] = to.get(name, _NO_COMMITS) + commits


_NO_COMMITS = Commits()
_NO_CHANGES = Changes()


class Churn:
    """What became of keys, by key and by day. Operations on one key come newest first, and then what was there before all of them."""

    def __init__(self) -> None:
        self.days: dict[str, Changes] = {}
        self._keys: dict[ContentKey, _Key] = {}

    def add(self, key: ContentKey, step: Step) -> None:
        """One operation more, older than those on this key until now."""
        known = self._keys.get(key)
        if known is None:
            self._keys[key] = _Key(step)
        else:
            self._happened(known, step.type)
            known.older(step)

    def __contains__(self, key: ContentKey) -> bool:
        return key in self._keys

    def end(self, before: Mapping[ContentKey, str]) -> list[KeyChanges]:
        """The changes of each key; `before` has the types of what was there before. Nothing can be added then."""
        for key, known in self._keys.items():
            self._happened(known, before.get(key))
        return [known.changes(key, before.get(key, "")) for key, known in self._keys.items()]

    def _happened(self, known: _Key, before: str | None) -> None:
        """What the operation was that came last to be known, now that it is known what it found."""
        change = known.happened(before)
        day = day_of(known.step.time)
        self.days[day] = self.days.get(day, _NO_CHANGES) + change


class _Key:
    """A key, as its history is read backwards: `step` is the oldest operation known, which waits for what was there before it."""

    __slots__ = ("commits", "created", "deleted", "last", "step", "type", "updated")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.last = step.time
        self.type = step.type
        self.commits = 1
        self.created = self.updated = self.deleted = 0

    def older(self, step: Step) -> None:
        self.commits += step.commit != self.step.commit
        self.type = self.type or step.type
        self.step = step

    def happened(self, before: str | None) -> Changes:
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
        return Changes(created, updated, deleted, tables, contents)

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
    """One day with commits. `tables` and `contents` are how many there were when it ended."""

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


class History(Struct, frozen=True):
    """What a history comes to: authors with the most commits first, days in their order, and of all the `keys` that changed the most changed ones."""

    commits: Commits
    changes: Changes
    authors: tuple[Author, ...]
    days: tuple[Day, ...]
    keys: int
    most_changed: tuple[KeyChanges, ...]


def history(log: Iterable[LogEntry], before: Iterable[Entry], most: int) -> History:
    """The history of these commits, newest first and with their operations; `before` is the state that the oldest of them was made on.

    Memory: some hundred bytes for each key that changed.
    """
    count, churn = CommitCount(), Churn()
    for entry in log:
        count.add(entry.meta)
        for key, step in steps_of(entry):
            churn.add(key, step)
    start, types = _NO_CHANGES, {}
    for found in before:
        start += there_is(found.type)
        if found.key in churn:
            types[found.key] = found.type
    keys = churn.end(types)
    return assembled(count, churn.days, start, KeyList(len(keys), keys), most)


def steps_of(entry: LogEntry) -> Iterator[tuple[ContentKey, Step]]:
    """The operations of a commit, newest first."""
    time = time_of(entry.meta)
    # Operations are told deletions first: a key that is made anew was deleted before.
    for operation in reversed(entry.operations or ()):
        yield (
            operation.key,
            Step(
                entry.hash,
                time,
                operation.content.type_name if isinstance(operation, Put) else None,
            ),
        )


class KeyList(NamedTuple):
    """How many keys have changed, and those of them among which the most changed ones are."""

    number: int
    changes: Iterable[KeyChanges]


def assembled(
    count: CommitCount, days: Mapping[str, Changes], start: Changes, keys: KeyList, most: int
) -> History:
    """A history of what was counted; `start` is how many tables and contents there were before."""
    found, there = [], start
    for day in sorted({*count.days, *days}):
        change = days.get(day, _NO_CHANGES)
        there += change
        commits = count.days.get(day, _NO_COMMITS).commits
        found.append(
            Day(
                day,
                commits,
                change.created,
                change.updated,
                change.deleted,
                there.tables,
                there.contents,
            )
        )
    authors = sorted(
        (Author(name, commits) for name, commits in count.authors.items()),
        key=lambda author: (-author.commits.commits, author.author),
    )
    return History(
        commits=sum(count.days.values(), _NO_COMMITS),
        changes=sum(days.values(), _NO_CHANGES),
        authors=tuple(authors),
        days=tuple(found),
        keys=keys.number,
        most_changed=tuple(nsmallest(most, keys.changes, key=lambda change: change.rank)),
    )


def there_is(type_: str) -> Changes:
    """What one key of this type counts in a state."""
    return Changes(tables=_is_table(type_), contents=_is_content(type_))


def author_of(meta: CommitMeta) -> str:
    """Whose commit it is."""
    return meta.author or meta.committer or ""


def time_of(meta: CommitMeta) -> datetime:
    """When a commit was made; in 1970 where a server does not tell."""
    return meta.commit_time or _EPOCH


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
