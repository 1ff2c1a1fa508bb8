"""Statistics as Spark jobs: commits are counted where they are read, operations are brought together by key, tables measured where they are read."""

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
    Changes,
    Churn,
    CommitCount,
    History,
    KeyChanges,
    KeyList,
    Step,
    assembled,
    steps_of,
    there_is,
)
from nessie_cli.model import ContentKey, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.spark.audit import CONTENTS_PER_TASK
from nessie_cli.spark.chains import Segment, chains, segments
from nessie_cli.spark.examining import measured
from nessie_cli.spark.jobs import ranges, spread
from nessie_cli.spark.options import ROWS_PER_PARTITION
from nessie_cli.spark.states import SomeKeys, entries_of

_FEW_COMMITS = 1_000
"""What is not worth a second task."""

# -- the history --------------------------------------------------------------------------------------------------------------------------

_Turn = tuple[tuple[str, ...], int, int]
"""A key by its elements, the number of the piece, and the place in it: in this order the steps of a key are newest first."""
_Told = Step | str | CommitCount | Changes
"""A step of the key; the type of what was there before all of them; or, about no key (`_ALL`), commits, or what there was before."""
_ALL: tuple[str, ...] = ()


class _Piece(Struct, frozen=True):
    """Some commits, or a part of the state before all of them; newest first by their numbers."""

    number: int
    what: Segment | SomeKeys


class _Part(Struct):
    """What one task makes of the keys that it got."""

    count: CommitCount
    start: Changes
    days: dict[str, Changes]
    keys: int
    most_changed: list[KeyChanges]


def history_of(
    spark: SparkSession, url: str, at: str, since: str | None, most: int, *, rows: int | None = None
) -> History:
    """The history of a commit, or what it has above `since`, one of its ancestors: what `audit.statistics.history` says of it.

    One job of two stages. A task reads `rows` commits or keys; None lets the size of the history say how many. Memory of a task: the steps of
    its keys are sorted, on disk where they are many.
    """
    tasks = spark.sparkContext.defaultParallelism

    def plan(repository: Repository) -> list[_Piece]:
        found: list[Segment | SomeKeys] = []
        for chain in chains(
            repository, [Reference(ReferenceType.BRANCH, "", at)], [since] if since else []
        ):
            found += segments(
                repository,
                chain,
                rows or min(max(_FEW_COMMITS, -(-chain.count // tasks)), ROWS_PER_PARTITION),
            )
        if since is not None:
            found += ranges(repository, SomeKeys(None, since), rows or ROWS_PER_PARTITION)
        return [_Piece(number, what) for number, what in enumerate(found)]

    steps = spread(spark, url, "stats", plan, _steps)
    reducers = min(steps.getNumPartitions(), 2 * tasks)
    by_key = steps.repartitionAndSortWithinPartitions(
        reducers, _place, ascending=True, keyfunc=_turn
    )  # type: ignore[type-var]  # tuples have an order
    parts = by_key.mapPartitions(_Summing(most)).collect()
    count, days, start = CommitCount(), dict[str, Changes](), Changes()
    for part in parts:
        count.add_all(part.count)
        start += part.start
        _add(days, part.days)
    changes = (change for part in parts for change in part.most_changed)
    return assembled(count, days, start, KeyList(sum(part.keys for part in parts), changes), most)


def _steps(repository: Repository, piece: _Piece) -> Iterator[tuple[_Turn, _Told]]:
    """What a piece tells of keys, and then of all of it."""
    number, whole = piece.number, (_ALL, piece.number, 0)
    if isinstance(piece.what, SomeKeys):
        start = Changes()
        for found in entries_of(repository, piece.what, content=False):
            start += there_is(found.type)
            yield (found.key.elements, number, 0), found.type
        yield whole, start
        return
    count, places = CommitCount(), counter()
    for entry in islice(repository.log(f"@{piece.what.start}", operations=True), piece.what.count):
        count.add(entry.meta)
        for key, step in steps_of(entry):
            yield (key.elements, number, next(places)), step
    yield whole, count


def _place(turn: _Turn) -> int:
    """Which task gets a key: the same in every process, whatever its hashes are salted with."""
    return zlib.crc32("\0".join(turn[0]).encode())


def _turn(turn: _Turn) -> _Turn:
    return turn


class _Summing:
    """What became of keys, from what is told of them in order; the `most` changed ones of them are kept."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, told: Iterable[tuple[_Turn, _Told]]) -> Iterator[_Part]:
        part = _Part(CommitCount(), Changes(), {}, 0, [])
        part.most_changed = nsmallest(
            self._most, _changes(told, part), key=lambda change: change.rank
        )
        yield part


def _changes(told: Iterable[tuple[_Turn, _Told]], part: _Part) -> Iterator[KeyChanges]:
    """The changes of each key, counted in the part."""
    for elements, found in groupby(told, key=lambda item: item[0][0]):
        churn, before = Churn(), dict[ContentKey, str]()
        for _, item in found:
            if isinstance(item, CommitCount):
                part.count.add_all(item)
            elif isinstance(item, Changes):
                part.start += item
            elif isinstance(item, str):
                before[ContentKey(elements)] = item
            else:
                churn.add(ContentKey(elements), item)
        ended = churn.end(before)
        part.keys += len(ended)
        _add(part.days, churn.days)
        yield from ended


def _add(days: dict[str, Changes], more: dict[str, Changes]) -> None:
    for day, changes in more.items():
        days[day] = days.get(day, Changes()) + changes


# -- how large tables are -----------------------------------------------------------------------------------------------------------------


def sizes_of(spark: SparkSession, url: str, at: str, most: int) -> Sizes:
    """The Iceberg tables of a commit: what `audit.sizes.sizes` says of them. One job."""

    def plan(repository: Repository) -> list[SomeKeys]:
        return ranges(repository, SomeKeys(None, at), CONTENTS_PER_TASK)

    return together(spread(spark, url, "stats", plan, _Measuring(most)).collect(), most)


class _Measuring:
    """The tables of a piece together, with the `most` largest of them."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, repository: Repository, part: SomeKeys) -> Iterator[Sizes]:
        yield sizes((size for _, size in measured(repository, part)), self._most)
