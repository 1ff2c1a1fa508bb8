"""The tables `log` and `operations` as streams: an offset is a hash, so every micro-batch is the same commits however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceType
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
                raise InvalidInput(f"table {asked.table} is no stream; {' and '.join(STREAMED)} are")
            if asked.at is not None:
                raise InvalidInput("option at: a stream has no end")
            if asked.references and (len(asked.references) > 1 or asked.references[0] == ALL_REFERENCES):
                raise InvalidInput("option ref: a stream follows one reference")
        self._asked = asked
        self._pinned = pinned
        self._schema = schema

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins: this commit is not a part of it."""
        return {"hash": self._pinned.since or NO_ANCESTOR}

    def latestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where the reference stands now."""
        with at(self._asked.place), opened(self._asked.url) as repository:
            name = self._asked.references[0] if self._asked.references else repository.config().default_branch
            return {"hash": repository.resolve(name).hash}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The commits after `start`, up to `end`. Raises where the reference has been moved away from what was read."""
        before, after = str(start["hash"]), str(end["hash"])
        with at(self._asked.place), opened(self._asked.url) as repository:
            common = repository.ahead_behind(f"@{after}", f"@{before}").common_ancestor
            if common != before:
                raise NotFound(
                    f"commit {before} was read before and is no longer in the history of {after}: the reference has been moved. A new checkpoint "
                    f"with option from={common} goes on where both histories part",
                    before,
                )
            head = Reference(ReferenceType.BRANCH, self._asked.references[0] if self._asked.references else "", after)
            head = self._named(head, repository.config().default_branch)
            return [Part(piece) for piece in plan_segments(repository, self._asked, [head], [before])]

    @staticmethod
    def _named(head: Reference, default: str) -> Reference:
        return head if head.name else Reference(head.type, default, head.hash)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one piece."""
        return read_part(self._asked, self._pinned, self._schema, partition)
