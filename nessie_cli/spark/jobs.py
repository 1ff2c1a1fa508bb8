"""Jobs over parts of a repository, planned by the calling process, without frames.

A table of the data source costs a Python process for each step: creating the source, planning,
reading. Here only the tasks need processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from pyspark import RDD
from pyspark.sql import SparkSession

from nessie_cli.model import KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.spark.errors import at
from nessie_cli.spark.keys import KeyPart
from nessie_cli.spark.process import at_driver, opened, opened_by_worker

P = TypeVar("P")
T = TypeVar("T")


def spread(
    spark: SparkSession,
    url: str,
    work_name: str,
    plan: Callable[[Repository], Sequence[P]],
    work: Callable[[Repository, P], Iterator[T]],
) -> RDD[T]:
    """Returns the results of `work` for each part of a plan, in order, by a task each.

    `work_name` describes the work in messages. `plan` runs here. `work` and the parts are sent to
    other machines, so they hold no connection.
    """
    url = at_driver(url)
    with opened(url) as repository:
        task: _Task[Any, T] = _Task(f"{url}, {work_name}", url, repository.config().created, work)
        parts = plan(repository)
    return spark.sparkContext.parallelize(parts, max(1, len(parts))).mapPartitions(task)


class _Task(Generic[P, T]):
    """A task, which opens the repository where it runs."""

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

    def __call__(self, parts: Iterable[P]) -> Iterator[T]:
        with at(self._place), opened_by_worker(self._url, self._created) as repository:
            for part in parts:
                yield from self._work(repository, part)


def ranges(repository: Repository, whole: KeyPart, most: int) -> list[KeyPart]:
    """Splits the keys of a commit into parts of about `most` keys.

    Lists the keys if the repository cannot split them itself.
    """
    cuts = repository.divisions(f"@{whole.hash}", most, prefix=whole.prefix)
    if cuts is None:
        keys = KeyRange(prefix=whole.prefix) if whole.prefix else KeyRange()
        listed = enumerate(repository.entries(f"@{whole.hash}", keys), 1)
        cuts = [entry.key for number, entry in listed if not number % most]
    return whole.cut(cuts)
