"""A table of the data source, and the pinned state that a read of it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from nessie_cli.model import ContentKey, Reference
from nessie_cli.repository.base import Repository
from nessie_cli.spark.options import ALL_REFERENCES, ReadOptions
from nessie_cli.spark.pushdown import ColumnKind, PushedFilters

Row = tuple[Any, ...]


class PinnedState(Struct, frozen=True):
    """The pinned state of a read: all processes read by these hashes, even if references move.

    `created` is the creation time of the repository, which distinguishes it from another one at the
    same path of a worker. `heads` are those of the option `ref`, `since` is the hash of the option
    `from`, and `newest` the number of the newest entry of the reflog.
    """

    created: datetime | None
    heads: tuple[Reference, ...] = ()
    since: str | None = None
    newest: int = 0


class Part(InputPartition):
    """A part of a table for one task. `value` is what the table reads."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)

    def __repr__(self) -> str:
        return f"Part({self.value!r})"


class SourceTable(NamedTuple):
    """A table: `pin` resolves references when a frame is created, `plan` splits, `rows` reads."""

    name: str
    options: frozenset[str]
    schema: StructType
    pushed: Mapping[str, ColumnKind]
    pin: Callable[[Repository, ReadOptions], PinnedState]
    plan: Callable[[Repository, ReadOptions, PinnedState, PushedFilters], list[Any]]
    rows: Callable[[Repository, Any], Iterator[Row]]


def created(repository: Repository) -> datetime | None:
    """Returns the creation time of the repository."""
    return repository.config().created


def heads(repository: Repository, options: ReadOptions) -> tuple[Reference, ...]:
    """Returns the references of the options `ref` and `at`, for `*` the default branch first."""
    default = repository.config().default_branch
    names = options.references or (default,)
    if names == (ALL_REFERENCES,):
        listed = sorted(repository.references(), key=lambda reference: reference.name != default)
        if options.at is None:
            return tuple(listed)
        names = tuple(reference.name for reference in listed)
    resolved = [
        repository.resolve(name if options.at is None else f"{name}*{options.at}") for name in names
    ]
    return tuple(dict.fromkeys(resolved))


def pin_heads(repository: Repository, options: ReadOptions) -> PinnedState:
    """Pins the options `ref` and `from`."""
    since = repository.resolve(options.since).hash if options.since else None
    return PinnedState(created(repository), heads(repository, options), since)


def in_prefix(key: ContentKey, prefix: ContentKey | None) -> bool:
    """Whether a key is the prefix or below it."""
    return prefix is None or key.starts_with(prefix)
