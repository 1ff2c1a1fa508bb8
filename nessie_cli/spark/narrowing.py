"""Filters that Spark pushes down, as what the store can be asked for. What is narrowed exactly is not evaluated again; a wider one is."""

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


class Kind(Enum):
    """What a column that can be narrowed holds."""

    KEY = "key"
    NAME = "name"
    TIME = "time"


class Narrowing(Struct, frozen=True):
    """What the rows have to be; None narrows nothing. `after` is excluded, `until` included."""

    keys: frozenset[ContentKey] | None = None
    names: frozenset[str] | None = None
    after: datetime | None = None
    until: datetime | None = None

    def wants(self, name: str) -> bool:
        """Whether rows of a reference of this name are asked for."""
        return self.names is None or name in self.names

    @property
    def nothing(self) -> bool:
        """Whether no row can be what is asked for."""
        return (
            self.keys == frozenset()
            or self.names == frozenset()
            or bool(self.after and self.until and self.after >= self.until)
        )


EVERYTHING = Narrowing()


def narrow(
    filters: Iterable[Filter], columns: Mapping[str, Kind]
) -> tuple[Narrowing, list[Filter]]:
    """What the filters on these columns come to, and the filters that are left to Spark."""
    found, left = EVERYTHING, []
    for filter_ in filters:
        column: tuple[str, ...] = getattr(filter_, "attribute", ())
        kind = columns.get(column[0]) if len(column) == 1 else None
        narrower = _narrower(found, filter_, kind) if kind else None
        if narrower is None:
            left.append(filter_)
        else:
            found = narrower
    return found, left


def _narrower(found: Narrowing, filter_: Filter, kind: Kind) -> Narrowing | None:
    if isinstance(filter_, IsNotNull):
        # None of these columns holds nulls, but for the name of what was read by its hash alone.
        return None if kind is Kind.NAME else found
    if kind is Kind.TIME:
        return _in_time(found, filter_)
    values = _values(filter_)
    if values is None:
        return None
    if kind is Kind.NAME:
        names = frozenset(values)
        return structs.replace(found, names=names if found.names is None else found.names & names)
    keys = frozenset(key for key in map(_key, values) if key is not None)
    return structs.replace(found, keys=keys if found.keys is None else found.keys & keys)


def _values(filter_: Filter) -> list[str] | None:
    """The texts that a column may equal; None for a filter that says something else."""
    values: list[Any]
    if isinstance(filter_, EqualTo | EqualNullSafe):
        values = [filter_.value]
    elif isinstance(filter_, In):
        values = list(filter_.value)
    else:
        return None
    return values if all(isinstance(value, str) for value in values) else None


def _key(text: str) -> ContentKey | None:
    """The key whose column holds exactly this text; None where no key has it."""
    try:
        key = ContentKey.parse(text)
    except InvalidInput:
        return None
    return key if str(key) == text else None


def _in_time(found: Narrowing, filter_: Filter) -> Narrowing | None:
    value = getattr(filter_, "value", None)
    if not isinstance(value, datetime):
        return None
    when = value if value.tzinfo else value.replace(tzinfo=UTC)
    if when == _EARLIEST:
        # There is no microsecond before it.
        return None
    after, until = found.after, found.until
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
    return structs.replace(found, after=after, until=until)
