"""Statistics as Spark jobs: tasks count commits, and operations are shuffled by key."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import count as counter
from itertools import groupby, islice

from msgspec import Struct
from pyspark.sql import SparkSession

from nessie_cli.audit.sizes import Sizes, sizes, together
from nessie_cli.audit.statistics import (
    ChangeCounts,
    Churn,
    CommitCounts,
    HistoryStatistics,
    KeyChanges,
    KeyList,
    KeyStep,
    assembled,
    steps_of,
    there_is,
)
from nessie_cli.model import ContentKey, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.spark.audit import CONTENTS_PER_TASK
from nessie_cli.spark.chains import Segment, chains, segments
from nessie_cli.spark.file_checks import measured
from nessie_cli.spark.jobs import ranges, spread
from nessie_cli.spark.keys import KeyPart, entries_of
from nessie_cli.spark.options import ROWS_PER_PARTITION

_FEW_COMMITS = 1_000
"""The number of commits or keys that is not worth a second task."""

# -- the history ----------------------------------------------------------------------------------

_Turn = tuple[tuple[str, ...], int, int]
"""Sort key: the elements of a key, the number of the part, the position in it.

It sorts the steps of a key newest first.
"""
_StepValue = KeyStep | str | CommitCounts | ChangeCounts
"""A step of a key, or the type of the content before all steps.

For `_ALL`, a count of commits, or the numbers before all commits.
"""
_ALL: tuple[str, ...] = ()


class _Slice(Struct, frozen=True):
    """Some commits, or a part of the keys before them. Numbers sort the newest first."""

    number: int
    part: Segment | KeyPart


class _TaskResult(Struct):
    """The result of one task for its keys."""

    count: CommitCounts
    start: ChangeCounts
    days: dict[str, ChangeCounts]
    keys: int
    most_changed: list[KeyChanges]


def history_of(
    spark: SparkSession, url: str, at: str, since: str | None, most: int, *, rows: int | None = None
) -> HistoryStatistics:
    """Returns `audit.statistics.history` of a commit, without the commits of `since`.

    It is one job of two stages. A task reads `rows` commits or keys; None chooses by the size of
    the history. Tasks sort the steps of their keys, on disk if they are many.
    """
    tasks = spark.sparkContext.defaultParallelism

    def plan(repository: Repository) -> list[_Slice]:
        sections: list[Segment | KeyPart] = []
        for chain in chains(
            repository, [Reference(ReferenceType.BRANCH, "", at)], [since] if since else []
        ):
            sections += segments(
                repository,
                chain,
                rows or min(max(_FEW_COMMITS, -(-chain.count // tasks)), ROWS_PER_PARTITION),
            )
        if since is not None:
            sections += ranges(repository, KeyPart(None, since), rows or ROWS_PER_PARTITION)
        return [_Slice(number, section) for number, section in enumerate(sections)]

    steps = spread(spark, url, "stats", plan, _steps)
    reducers = min(steps.getNumPartitions(), 2 * tasks)
    by_key = steps.repartitionAndSortWithinPartitions(
        reducers, _place, ascending=True, keyfunc=_turn
    )  # type: ignore[type-var]  # tuples have an order
    parts = by_key.mapPartitions(_Summing(most)).collect()
    count, days, start = CommitCounts(), dict[str, ChangeCounts](), ChangeCounts()
    for part in parts:
        count.add_all(part.count)
        start += part.start
        _add(days, part.days)
    changes = (change for part in parts for change in part.most_changed)
    return assembled(count, days, start, KeyList(sum(part.keys for part in parts), changes), most)


def _steps(repository: Repository, slice_: _Slice) -> Iterator[tuple[_Turn, _StepValue]]:
    """Yields the steps of a part by key, then its totals."""
    number, whole = slice_.number, (_ALL, slice_.number, 0)
    if isinstance(slice_.part, KeyPart):
        start = ChangeCounts()
        for entry in entries_of(repository, slice_.part, content=False):
            start += there_is(entry.type)
            yield (entry.key.elements, number, 0), entry.type
        yield whole, start
        return
    count, places = CommitCounts(), counter()
    for log_entry in islice(
        repository.log(f"@{slice_.part.start}", operations=True), slice_.part.count
    ):
        count.add(log_entry.meta)
        for key, step in steps_of(log_entry):
            yield (key.elements, number, next(places)), step
    yield whole, count


def _place(turn: _Turn) -> int:
    """Returns the number of the task for a key, independent of the hash seed of a process."""
    return zlib.crc32("\0".join(turn[0]).encode())


def _turn(turn: _Turn) -> _Turn:
    return turn


class _Summing:
    """Counts the changes of keys from their sorted steps, and keeps the `most` changed keys."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, steps: Iterable[tuple[_Turn, _StepValue]]) -> Iterator[_TaskResult]:
        part = _TaskResult(CommitCounts(), ChangeCounts(), {}, 0, [])
        part.most_changed = nsmallest(
            self._most, _changes(steps, part), key=lambda change: change.rank
        )
        yield part


def _changes(steps: Iterable[tuple[_Turn, _StepValue]], part: _TaskResult) -> Iterator[KeyChanges]:
    """Yields the changes of each key, and adds them to the part."""
    for elements, key_steps in groupby(steps, key=lambda step: step[0][0]):
        churn, before = Churn(), dict[ContentKey, str]()
        for _, step in key_steps:
            if isinstance(step, CommitCounts):
                part.count.add_all(step)
            elif isinstance(step, ChangeCounts):
                part.start += step
            elif isinstance(step, str):
                before[ContentKey(elements)] = step
            else:
                churn.add(ContentKey(elements), step)
        ended = churn.end(before)
        part.keys += len(ended)
        _add(part.days, churn.days)
        yield from ended


def _add(days: dict[str, ChangeCounts], more: dict[str, ChangeCounts]) -> None:
    for day, changes in more.items():
        days[day] = days.get(day, ChangeCounts()) + changes


# -- how large tables are -------------------------------------------------------------------------


def sizes_of(spark: SparkSession, url: str, at: str, most: int) -> Sizes:
    """Returns `audit.sizes.sizes` of the Iceberg tables of a commit, by one job."""

    def plan(repository: Repository) -> list[KeyPart]:
        return ranges(repository, KeyPart(None, at), CONTENTS_PER_TASK)

    return together(spread(spark, url, "stats", plan, _Measuring(most)).collect(), most)


class _Measuring:
    """Adds up the tables of a part, and keeps the `most` largest ones."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, repository: Repository, part: KeyPart) -> Iterator[Sizes]:
        yield sizes((size for _, size in measured(repository, part)), self._most)
