"""The tables `log` and `operations`: history by segments, or by key where only some keys are asked for."""

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
from nessie_cli.spark.narrowing import EVERYTHING, Kind, Narrowing
from nessie_cli.spark.options import Asked
from nessie_cli.spark.table import Pinned, Row, Table, in_prefix, pin_heads

_REFERENCE = column(
    "reference",
    TEXT,
    "The first of the references asked for that has the commit along its first parents; null where a hash was",
)

LOG_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit", nullable=False),
        column("parents", TEXTS, "Its parents: the first one, then what it merged", nullable=False),
        column(
            "height",
            LONG,
            "Commits from the empty history to this one along first parents; null where the server does not tell",
        ),
        column("commit_time", TIME, "When it was made", nullable=False),
        column("author_time", TIME, "When its author made it, as the client says"),
        column("committer", TEXT, "Who committed it"),
        column("authors", TEXTS, "Its authors", nullable=False),
        column("signed_off_by", TEXTS, "Who signed it off", nullable=False),
        column("message", TEXT, "What it says", nullable=False),
        column("properties", MapType(TEXT, TEXTS), "Its properties", nullable=False),
    ]
)

OPERATIONS_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit", nullable=False),
        column("commit_time", TIME, "When it was made", nullable=False),
        column("operation", TEXT, "PUT or DELETE", nullable=False),
        *KEY_COLUMNS,
        column("content", CONTENT, "What was put; null for DELETE"),
    ]
)


class SomeHistory(Struct, frozen=True):
    """A segment, and the operations of it that are asked for: below `prefix`, or on `keys`; then `floor_time` ends the history of a key."""

    segment: Segment
    prefix: ContentKey | None = None
    keys: tuple[ContentKey, ...] | None = None
    floor_time: datetime | None = None


def _plan_log(
    repository: Repository, asked: Asked, pinned: Pinned, wanted: Narrowing
) -> list[SomeHistory]:
    found, hidden = _within(repository, pinned, wanted)
    return plan_segments(repository, asked, found, hidden, wanted)


def plan_segments(
    repository: Repository,
    asked: Asked,
    heads: Sequence[Reference],
    hidden: Sequence[str],
    wanted: Narrowing = EVERYTHING,
) -> list[SomeHistory]:
    """The segments of what the heads have and the hidden ones have not."""
    plan = []
    for chain in chains(repository, heads, hidden):
        if wanted.wants(chain.reference or ""):
            plan += [
                SomeHistory(segment, asked.key_prefix)
                for segment in segments(repository, chain, asked.rows)
            ]
    return plan


def _plan_operations(
    repository: Repository, asked: Asked, pinned: Pinned, wanted: Narrowing
) -> list[SomeHistory]:
    found, hidden = _within(repository, pinned, wanted)
    if wanted.keys is None:
        return plan_segments(repository, asked, found, hidden, wanted)
    keys = tuple(sorted(key for key in wanted.keys if in_prefix(key, asked.key_prefix)))
    plan = []
    for chain in chains(repository, found, hidden) if keys else ():
        if wanted.wants(chain.reference or ""):
            floor = (
                None
                if chain.floor == NO_ANCESTOR
                else next(iter(repository.log(f"@{chain.floor}"))).meta.commit_time
            )
            plan.append(
                SomeHistory(
                    Segment(chain.reference, chain.head, chain.count), keys=keys, floor_time=floor
                )
            )
    return plan


def _within(
    repository: Repository, pinned: Pinned, wanted: Narrowing
) -> tuple[list[Reference], list[str]]:
    """The heads, and what is hidden of their histories, with the bounds on the commit time applied: times only grow along first parents."""
    found = list(pinned.heads)
    if wanted.until is not None:
        found = [_then(repository, head, wanted.until) for head in found]
    hidden = [pinned.since] if pinned.since else []
    if wanted.after is not None:
        hidden += [_then(repository, head, wanted.after).hash for head in found]
    return found, hidden


def _then(repository: Repository, head: Reference, time: datetime) -> Reference:
    """The newest commit of a history that is not younger than a time."""
    text = time.isoformat().replace("+00:00", "Z")
    return structs.replace(head, hash=repository.resolve(f"@{head.hash}*{text}").hash)


def _log_rows(repository: Repository, part: SomeHistory) -> Iterator[Row]:
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


def _entries(repository: Repository, part: SomeHistory, *, operations: bool) -> Iterator[LogEntry]:
    return islice(
        repository.log(f"@{part.segment.start}", operations=operations), part.segment.count
    )


def _operation_rows(repository: Repository, part: SomeHistory) -> Iterator[Row]:
    if part.keys is None:
        for entry in _entries(repository, part, operations=True):
            yield from _rows_of(
                part,
                entry,
                [found for found in entry.operations or () if in_prefix(found.key, part.prefix)],
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
                part, entry, [found for found in entry.operations or () if found.key == key]
            )


def _rows_of(part: SomeHistory, entry: LogEntry, operations: Sequence[Operation]) -> Iterator[Row]:
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
_TIMES = {"reference": Kind.NAME, "commit_time": Kind.TIME}

LOG = Table("log", _RANGE, LOG_SCHEMA, _TIMES, pin_heads, _plan_log, _log_rows)
OPERATIONS = Table(
    "operations",
    _RANGE | {"prefix"},
    OPERATIONS_SCHEMA,
    _TIMES | {"key": Kind.KEY},
    pin_heads,
    _plan_operations,
    _operation_rows,
)
