"""The tables `log` and `operations`: history by segments, or by key if keys are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from msgspec import Struct, structs
from pyspark.sql.types import MapType, StructType

from nessie_cli.model import NO_ANCESTOR, ContentKey, Delete, LogEntry, Operation, Put, Reference
from nessie_cli.repository.base import Repository
from nessie_cli.spark.chains import Segment, chains, segments
from nessie_cli.spark.columns import (
    CONTENT,
    KEY_COLUMNS,
    LONG,
    TEXT,
    TEXTS,
    TIME,
    column,
    content_row,
    key_values,
)
from nessie_cli.spark.options import ReadOptions
from nessie_cli.spark.pushdown import EVERYTHING, ColumnKind, PushedFilters
from nessie_cli.spark.table import PinnedState, Row, SourceTable, in_prefix, pin_heads

_REFERENCE = column(
    "reference",
    TEXT,
    "The first of the given references with the commit among its first parents; null for a hash",
)

LOG_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit", nullable=False),
        column(
            "parents", TEXTS, "Its parents: the first parent, then merged commits", nullable=False
        ),
        column(
            "height",
            LONG,
            (
                "The number of first parents, from the empty history on; null if the server does"
                " not return it"
            ),
        ),
        column("commit_time", TIME, "The time of the commit", nullable=False),
        column("author_time", TIME, "The author's time, from the client"),
        column("committer", TEXT, "The committer"),
        column("authors", TEXTS, "Its authors", nullable=False),
        column("signed_off_by", TEXTS, "The sign-offs", nullable=False),
        column("message", TEXT, "The commit message", nullable=False),
        column("properties", MapType(TEXT, TEXTS), "Its properties", nullable=False),
    ]
)

OPERATIONS_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit", nullable=False),
        column("commit_time", TIME, "The time of the commit", nullable=False),
        column("operation", TEXT, "PUT or DELETE", nullable=False),
        *KEY_COLUMNS,
        column("content", CONTENT, "The content; null for DELETE"),
    ]
)


class HistoryPart(Struct, frozen=True):
    """A segment and a filter of its operations: below `prefix`, or on `keys`.

    `floor_time` ends the history of a key.
    """

    segment: Segment
    prefix: ContentKey | None = None
    keys: tuple[ContentKey, ...] | None = None
    floor_time: datetime | None = None


def _plan_log(
    repository: Repository, options: ReadOptions, pinned: PinnedState, filters: PushedFilters
) -> list[HistoryPart]:
    heads, hidden = _within(repository, pinned, filters)
    return plan_segments(repository, options, heads, hidden, filters)


def plan_segments(
    repository: Repository,
    options: ReadOptions,
    heads: Sequence[Reference],
    hidden: Sequence[str],
    filters: PushedFilters = EVERYTHING,
) -> list[HistoryPart]:
    """Returns the segments of the heads without the commits of the hidden ones."""
    plan = []
    for chain in chains(repository, heads, hidden):
        if filters.matches(chain.reference or ""):
            plan += [
                HistoryPart(segment, options.key_prefix)
                for segment in segments(repository, chain, options.rows)
            ]
    return plan


def _plan_operations(
    repository: Repository, options: ReadOptions, pinned: PinnedState, filters: PushedFilters
) -> list[HistoryPart]:
    heads, hidden = _within(repository, pinned, filters)
    if filters.keys is None:
        return plan_segments(repository, options, heads, hidden, filters)
    keys = tuple(sorted(key for key in filters.keys if in_prefix(key, options.key_prefix)))
    plan = []
    for chain in chains(repository, heads, hidden) if keys else ():
        if filters.matches(chain.reference or ""):
            floor = (
                None
                if chain.floor == NO_ANCESTOR
                else next(iter(repository.log(f"@{chain.floor}"))).meta.commit_time
            )
            plan.append(
                HistoryPart(
                    Segment(chain.reference, chain.head, chain.count), keys=keys, floor_time=floor
                )
            )
    return plan


def _within(
    repository: Repository, pinned: PinnedState, filters: PushedFilters
) -> tuple[list[Reference], list[str]]:
    """Returns the heads and hidden hashes within the bounds of the commit time.

    Commit times increase along first parents.
    """
    heads = list(pinned.heads)
    if filters.until is not None:
        heads = [_then(repository, head, filters.until) for head in heads]
    hidden = [pinned.since] if pinned.since else []
    if filters.after is not None:
        hidden += [_then(repository, head, filters.after).hash for head in heads]
    return heads, hidden


def _then(repository: Repository, head: Reference, time: datetime) -> Reference:
    """Returns the newest commit of a history at or before a time."""
    text = time.isoformat().replace("+00:00", "Z")
    return structs.replace(head, hash=repository.resolve(f"@{head.hash}*{text}").hash)


def _log_rows(repository: Repository, part: HistoryPart) -> Iterator[Row]:
    for entry in _entries(repository, part, operations=False):
        meta = entry.meta
        yield (
            part.segment.reference,
            entry.hash,
            list(meta.parents),
            entry.height or None,
            meta.commit_time,
            meta.author_time,
            meta.committer,
            list(meta.authors),
            list(meta.signed_off_by),
            meta.message,
            [(name, list(values)) for name, values in meta.properties.items()],
        )


def _entries(repository: Repository, part: HistoryPart, *, operations: bool) -> Iterator[LogEntry]:
    return islice(
        repository.log(f"@{part.segment.start}", operations=operations), part.segment.count
    )


def _operation_rows(repository: Repository, part: HistoryPart) -> Iterator[Row]:
    if part.keys is None:
        for entry in _entries(repository, part, operations=True):
            yield from _rows_of(
                part,
                entry,
                [
                    operation
                    for operation in entry.operations or ()
                    if in_prefix(operation.key, part.prefix)
                ],
            )
        return
    for key in part.keys:
        for entry in repository.log_of_key(f"@{part.segment.start}", key, operations=True):
            if (
                part.floor_time
                and entry.meta.commit_time
                and entry.meta.commit_time <= part.floor_time
            ):
                break
            yield from _rows_of(
                part,
                entry,
                [operation for operation in entry.operations or () if operation.key == key],
            )


def _rows_of(part: HistoryPart, entry: LogEntry, operations: Sequence[Operation]) -> Iterator[Row]:
    for operation in operations:
        content = operation.content if isinstance(operation, Put) else None
        name = "DELETE" if isinstance(operation, Delete) else "PUT"
        yield (
            part.segment.reference,
            entry.hash,
            entry.meta.commit_time,
            name,
            *key_values(operation.key),
            content_row(content),
        )


_RANGE = frozenset({"ref", "from", "to", "at", "maxcommitsperbatch"})
_TIMES = {"reference": ColumnKind.NAME, "commit_time": ColumnKind.TIME}

LOG = SourceTable("log", _RANGE, LOG_SCHEMA, _TIMES, pin_heads, _plan_log, _log_rows)
OPERATIONS = SourceTable(
    "operations",
    _RANGE | {"prefix"},
    OPERATIONS_SCHEMA,
    _TIMES | {"key": ColumnKind.KEY},
    pin_heads,
    _plan_operations,
    _operation_rows,
)
