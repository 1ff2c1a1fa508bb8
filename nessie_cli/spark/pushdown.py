"""Filters that Spark pushes down. Exact ones are not evaluated again by Spark, others are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from msgspec import Struct, structs
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

MICROSECOND = timedelta(microseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class ColumnKind(Enum):
    """The kind of a column with push-down."""

    KEY = "key"
    NAME = "name"
    TIME = "time"


class PushedFilters(Struct, frozen=True):
    """The pushed filters, None for no filter. `after` is exclusive, `until` inclusive."""

    keys: frozenset[ContentKey] | None = None
    names: frozenset[str] | None = None
    after: datetime | None = None
    until: datetime | None = None

    def matches(self, name: str) -> bool:
        """Whether rows of a reference match."""
        return self.names is None or name in self.names

    @property
    def nothing(self) -> bool:
        """Whether no row can match."""
        return (
            self.keys == frozenset()
            or self.names == frozenset()
            or bool(self.after and self.until and self.after >= self.until)
        )


EVERYTHING = PushedFilters()


def push_down(
    filters: Iterable[Filter], columns: Mapping[str, ColumnKind]
) -> tuple[PushedFilters, list[Filter]]:
    """Returns the pushed filters, and the filters that Spark evaluates."""
    pushed, left = EVERYTHING, []
    for filter_ in filters:
        column: tuple[str, ...] = getattr(filter_, "attribute", ())
        kind = columns.get(column[0]) if len(column) == 1 else None
        narrowed = _with_filter(pushed, filter_, kind) if kind else None
        if narrowed is None:
            left.append(filter_)
        else:
            pushed = narrowed
    return pushed, left


def _with_filter(pushed: PushedFilters, filter_: Filter, kind: ColumnKind) -> PushedFilters | None:
    if isinstance(filter_, IsNotNull):
        # None of these columns contains nulls, except the reference of a read by hash.
        return None if kind is ColumnKind.NAME else pushed
    if kind is ColumnKind.TIME:
        return _in_time(pushed, filter_)
    values = _values(filter_)
    if values is None:
        return None
    if kind is ColumnKind.NAME:
        names = frozenset(values)
        return structs.replace(
            pushed, names=names if pushed.names is None else pushed.names & names
        )
    keys = frozenset(key for key in map(_key, values) if key is not None)
    return structs.replace(pushed, keys=keys if pushed.keys is None else pushed.keys & keys)


def _values(filter_: Filter) -> list[str] | None:
    """Returns the strings that a column may equal, None for another filter."""
    values: list[Any]
    if isinstance(filter_, EqualTo | EqualNullSafe):
        values = [filter_.value]
    elif isinstance(filter_, In):
        values = list(filter_.value)
    else:
        return None
    return values if all(isinstance(value, str) for value in values) else None


def _key(text: str) -> ContentKey | None:
    """Returns the key with exactly this text in its column, or None."""
    try:
        key = ContentKey.parse(text)
    except InvalidInput:
        return None
    return key if str(key) == text else None


def _in_time(pushed: PushedFilters, filter_: Filter) -> PushedFilters | None:
    value = getattr(filter_, "value", None)
    if not isinstance(value, datetime):
        return None
    when = value if value.tzinfo else value.replace(tzinfo=UTC)
    if when == _EARLIEST:
        # The earliest time has no microsecond before it.
        return None
    after, until = pushed.after, pushed.until
    if isinstance(filter_, GreaterThan | GreaterThanOrEqual | EqualTo):
        bound = when if isinstance(filter_, GreaterThan) else when - MICROSECOND
        after = bound if after is None else max(after, bound)
    if isinstance(filter_, LessThan | LessThanOrEqual | EqualTo):
        bound = when - MICROSECOND if isinstance(filter_, LessThan) else when
        until = bound if until is None else min(until, bound)
    if not isinstance(
        filter_, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual | EqualTo
    ):
        return None
    return structs.replace(pushed, after=after, until=until)
