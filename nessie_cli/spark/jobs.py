"""Pieces of a repository worked on by tasks, planned by the process that calls.

What a command needs no frames for takes this way: a table of the data source costs Spark a Python process for each step (to make the source, to
plan, to read), all of which have to start first; here it is the tasks' processes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from pyspark import RDD
from pyspark.sql import SparkSession

from nessie_cli.model import KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.spark.failures import at
from nessie_cli.spark.process import at_driver, opened, opened_by_worker
from nessie_cli.spark.states import SomeKeys

P = TypeVar("P")
T = TypeVar("T")


def spread(
    spark: SparkSession,
    url: str,
    what: str,
    plan: Callable[[Repository], Sequence[P]],
    work: Callable[[Repository, P], Iterator[T]],
) -> RDD[T]:
    """What `work` makes of each piece of a plan; a task for each, in their order. `what` says in messages what was being done.

    `plan` is called here and now. `work` and the pieces travel to other machines, so they hold no connection.
    """
    url = at_driver(url)
    with opened(url) as repository:
        task: _Task[Any, T] = _Task(f"{url}, {what}", url, repository.config().created, work)
        pieces = plan(repository)
    return spark.sparkContext.parallelize(pieces, max(1, len(pieces))).mapPartitions(task)


class _Task(Generic[P, T]):
    """Opens the repository where it runs."""

    def __init__(
        self,
        place: str,
        url: str,
        created: datetime | None,
        work: Callable[[Repository, P], Iterator[T]],
    ) -> None:
        self._place = place
        self._url = url
        self._created = created
        self._work = work

    def __call__(self, pieces: Iterable[P]) -> Iterator[T]:
        with at(self._place), opened_by_worker(self._url, self._created) as repository:
            for piece in pieces:
                yield from self._work(repository, piece)


def ranges(repository: Repository, whole: SomeKeys, most: int) -> list[SomeKeys]:
    """A state in pieces of about `most` keys. Where the repository cannot tell where to cut, its keys are listed for it."""
    cuts = repository.divisions(f"@{whole.hash}", most, prefix=whole.prefix)
    if cuts is None:
        keys = KeyRange(prefix=whole.prefix) if whole.prefix else KeyRange()
        listed = enumerate(repository.entries(f"@{whole.hash}", keys), 1)
        cuts = [entry.key for number, entry in listed if not number % most]
    return whole.cut(cuts)
