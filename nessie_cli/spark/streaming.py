"""The tables `log` and `operations` as streams. Offsets are hashes, so retries are exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.spark.errors import at
from nessie_cli.spark.history import plan_segments
from nessie_cli.spark.options import ALL_REFERENCES, ReadOptions
from nessie_cli.spark.process import opened
from nessie_cli.spark.reader import read_part
from nessie_cli.spark.table import Part, PinnedState

STREAMED = ("log", "operations")

Offset = dict[str, Any]


class LogStream(DataSourceStreamReader):
    """New first parents of one reference, after the revision `from` (default: all)."""

    def __init__(self, options: ReadOptions, pinned: PinnedState, schema: StructType) -> None:
        with at(options.place):
            if options.table not in STREAMED:
                raise InvalidInput(
                    f"table {options.table} is not a stream", hint=f"{' and '.join(STREAMED)} are"
                )
            if options.at is not None:
                raise InvalidInput("option 'at' is not allowed, because a stream has no end")
            if options.references and (
                len(options.references) > 1 or options.references[0] == ALL_REFERENCES
            ):
                raise InvalidInput("option ref: a stream follows one reference")
        self._options = options
        self._pinned = pinned
        self._schema = schema
        self._reached: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Returns the commit after which a query without a checkpoint begins."""
        beginning = self._pinned.since or NO_ANCESTOR
        return _offset(beginning, beginning)

    def latestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Returns the HEAD of the reference, or the end of the next limited batch."""
        reached = self._reached or self.initialOffset()
        with at(self._options.place), opened(self._options.url) as repository:
            name = self._name(repository)
            try:
                head = repository.resolve(name).hash
            except NotFound as error:
                raise NotFound(
                    f"{error.message}; the stream has read up to commit {reached['hash']}", name
                ) from None
            most = self._options.commits_per_batch
            if (
                most is not None
                and (ahead := _beyond(repository, head, str(reached["hash"]))) > most
            ):
                head = repository.resolve(f"@{head}~{ahead - most}").hash
            return _offset(reached.get("from"), head)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Returns the parts of the commits after `start`, up to `end`.

        Raises an error if the reference no longer contains `start`. A restarted query calls it with
        its last batch first.
        """
        self._reached = end
        before, after = str(start["hash"]), str(end["hash"])
        if before == start.get("from") and "from" in end:
            # The first batch, perhaps repeated: it begins at the planned commit, not at a name.
            before = str(end["from"])
        with at(self._options.place), opened(self._options.url) as repository:
            _beyond(repository, after, before)
            head = Reference(ReferenceType.BRANCH, self._name(repository), after)
            return [
                Part(part) for part in plan_segments(repository, self._options, [head], [before])
            ]

    def _name(self, repository: Repository) -> str:
        return (
            self._options.references[0]
            if self._options.references
            else repository.config().default_branch
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one part."""
        return read_part(self._options, self._pinned, self._schema, partition)


def _offset(beginning: str | None, hash_: str) -> Offset:
    """Returns an offset: the last commit `hash`, and the commit `from` before the first batch.

    Spark does not store the start of the first batch until it is done.
    """
    return {"hash": hash_} if beginning is None else {"from": beginning, "hash": hash_}


def _beyond(repository: Repository, after: str, before: str) -> int:
    """Returns the number of commits after `before` up to `after`. Raises an error if they fork."""
    apart = repository.ahead_behind(f"@{after}", f"@{before}")
    if apart.common_ancestor != before:
        raise NotFound(
            f"commit {before} was read before, but is no longer in the history of {after}: "
            "the reference has been moved",
            before,
            hint="use a new checkpoint with the option "
            f"from={apart.common_ancestor}, their merge base",
        )
    return apart.ahead
