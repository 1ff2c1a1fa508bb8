"""The tables `log` and `operations` as streams: an offset is a hash, so every micro-batch is the same commits however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.spark.failures import at
from nessie_cli.spark.history import plan_segments
from nessie_cli.spark.options import ALL_REFERENCES, Asked
from nessie_cli.spark.process import opened
from nessie_cli.spark.reader import read_part
from nessie_cli.spark.table import Part, Pinned

STREAMED = ("log", "operations")

Offset = dict[str, Any]


class LogStream(DataSourceStreamReader):
    """New commits of one reference along first parents, from the one that `from` names on (default: from the empty history on)."""

    def __init__(self, asked: Asked, pinned: Pinned, schema: StructType) -> None:
        with at(asked.place):
            if asked.table not in STREAMED:
                raise InvalidInput(
                    f"table {asked.table} is no stream; {' and '.join(STREAMED)} are"
                )
            if asked.at is not None:
                raise InvalidInput("option at: a stream has no end")
            if asked.references and (
                len(asked.references) > 1 or asked.references[0] == ALL_REFERENCES
            ):
                raise InvalidInput("option ref: a stream follows one reference")
        self._asked = asked
        self._pinned = pinned
        self._schema = schema
        self._reached: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins: this commit is not a part of it."""
        beginning = self._pinned.since or NO_ANCESTOR
        return _offset(beginning, beginning)

    def latestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where the reference stands now; with a limit, at most so many commits from what has been planned."""
        reached = self._reached or self.initialOffset()
        with at(self._asked.place), opened(self._asked.url) as repository:
            name = self._name(repository)
            try:
                head = repository.resolve(name).hash
            except NotFound as error:
                raise NotFound(
                    f"{error.message}; the stream has read up to commit {reached['hash']}", name
                ) from None
            most = self._asked.commits_per_batch
            if (
                most is not None
                and (ahead := _beyond(repository, head, str(reached["hash"]))) > most
            ):
                head = repository.resolve(f"@{head}~{ahead - most}").hash
            return _offset(reached.get("from"), head)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The commits after `start`, up to `end`. Raises where the reference has been moved away from what was read.

        A query that goes on calls it with what it has reached before it asks for more.
        """
        self._reached = end
        before, after = str(start["hash"]), str(end["hash"])
        if before == start.get("from") and "from" in end:
            # The first batch, maybe once more: it begins where it did when it was planned, wherever a name leads now.
            before = str(end["from"])
        with at(self._asked.place), opened(self._asked.url) as repository:
            _beyond(repository, after, before)
            head = Reference(ReferenceType.BRANCH, self._name(repository), after)
            return [
                Part(piece) for piece in plan_segments(repository, self._asked, [head], [before])
            ]

    def _name(self, repository: Repository) -> str:
        return (
            self._asked.references[0]
            if self._asked.references
            else repository.config().default_branch
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one piece."""
        return read_part(self._asked, self._pinned, self._schema, partition)


def _offset(beginning: str | None, hash_: str) -> Offset:
    """`hash` is the last commit that was read, `from` what the first batch began behind: Spark keeps no such thing until that one is done."""
    return {"hash": hash_} if beginning is None else {"from": beginning, "hash": hash_}


def _beyond(repository: Repository, after: str, before: str) -> int:
    """How many commits there are after `before`, up to `after`; raises where they are on another line."""
    apart = repository.ahead_behind(f"@{after}", f"@{before}")
    if apart.common_ancestor != before:
        raise NotFound(
            f"commit {before} was read before and is no longer in the history of {after}: the reference has been moved. A new checkpoint "
            f"with option from={apart.common_ancestor} goes on where both histories part",
            before,
        )
    return apart.ahead
