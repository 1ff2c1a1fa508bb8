"""Combines tables with Spark: executors read and encode manifests, and the driver decides.

The driver writes the new manifests, because a task can run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from pyspark.sql import SparkSession

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.combination.engines import Engine, LocalEngine, ManifestJob, Read
from nessie_cli.iceberg.files import Files

J = TypeVar("J", bound=ManifestJob)
R = TypeVar("R")
LEAST = 4 * 2**20
"""The least bytes of manifests for Spark: its start takes longer than decoding them here."""
_MOST = 256 * 2**20
"""The most bytes of manifests of one Spark job, whose results the driver receives at once."""
_TASKS_PER_PROCESSOR = 4


class SparkEngine(Engine):
    """Performs jobs on Spark's executors, and few jobs here.

    `session` is called once, if there are enough jobs. `files` are sent with the tasks, without
    connections: the executors need access to the files.
    """

    def __init__(self, files: Files, session: Callable[[], SparkSession]) -> None:
        self._files = files
        self._local = LocalEngine(files.read)
        self._new_session = session
        self._session: SparkSession | None = None

    def map(self, work: Callable[[Read, J], R], jobs: Sequence[J]) -> Iterator[R]:
        """Yields the results. See `Engine.map`."""
        if sum(job.size for job in jobs) < LEAST:
            yield from self._local.map(work, jobs)
            return
        if self._session is None:
            self._session = self._new_session()
        context = self._session.sparkContext
        for batch in _batches(jobs):
            tasks = min(len(batch), _TASKS_PER_PROCESSOR * context.defaultParallelism)
            task: _Task[J, R] = _Task(self._files, work)
            for result in context.parallelize(batch, tasks).mapPartitions(task).collect():
                if isinstance(result, NessieError):
                    raise result
                yield result


def _batches(jobs: Sequence[J]) -> Iterator[list[J]]:
    batch: list[J] = []
    size = 0
    for job in jobs:
        if batch and size + job.size > _MOST:
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += job.size
    if batch:
        yield batch


class _Task(Generic[J, R]):
    """Performs jobs on an executor. An error is a result, so that its class is known here."""

    def __init__(self, files: Files, work: Callable[[Read, J], R]) -> None:
        self._files = files
        self._work = work

    def __call__(self, jobs: Iterable[J]) -> Iterator[Any]:
        for job in jobs:
            try:
                result: Any = self._work(self._files.read, job)
            except NessieError as error:
                result = error
            yield result
