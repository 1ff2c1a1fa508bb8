"""What a table of the data source is, and the state of the repository that one read of it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from nessie_cli.model import ContentKey, Reference
from nessie_cli.repository.base import Repository
from nessie_cli.spark.narrowing import Kind, Narrowing
from nessie_cli.spark.options import ALL_REFERENCES, Asked

Row = tuple[Any, ...]


class Pinned(Struct, frozen=True):
    """The state that a read sees: every process reads by these hashes, wherever the references go meanwhile.

    `created` is when the repository was made, which tells it from another one at the same path of another machine. `heads` are what the option
    `ref` names, `since` the hash of the option `from`, `newest` the number of the newest entry of the reflog.
    """

    created: datetime | None
    heads: tuple[Reference, ...] = ()
    since: str | None = None
    newest: int = 0


class Part(InputPartition):
    """A piece of a table, read by one task. `what` is a value that the table knows how to read."""

    def __init__(self, what: Any) -> None:
        super().__init__(what)

    @property
    def what(self) -> Any:
        """What is to be read."""
        return self.value

    def __repr__(self) -> str:
        return f"Part({self.value!r})"


class Table(NamedTuple):
    """One table: `pin` looks at the repository once, when the frame is made; `plan` cuts the read into pieces; `rows` reads one, anywhere."""

    name: str
    options: frozenset[str]
    schema: StructType
    narrowed: Mapping[str, Kind]
    pin: Callable[[Repository, Asked], Pinned]
    plan: Callable[[Repository, Asked, Pinned, Narrowing], list[Any]]
    rows: Callable[[Repository, Any], Iterator[Row]]


def created(repository: Repository) -> datetime | None:
    """When the repository was made."""
    return repository.config().created


def heads(repository: Repository, asked: Asked) -> tuple[Reference, ...]:
    """What the options `ref` and `at` name, each reference once; for `*` the default branch first."""
    default = repository.config().default_branch
    names = asked.references or (default,)
    if names == (ALL_REFERENCES,):
        listed = sorted(repository.references(), key=lambda reference: reference.name != default)
        if asked.at is None:
            return tuple(listed)
        names = tuple(reference.name for reference in listed)
    found = [
        repository.resolve(name if asked.at is None else f"{name}*{asked.at}") for name in names
    ]
    return tuple(dict.fromkeys(found))


def pin_heads(repository: Repository, asked: Asked) -> Pinned:
    """Pin what `ref` names, and `from` where it is given."""
    since = repository.resolve(asked.since).hash if asked.since else None
    return Pinned(created(repository), heads(repository, asked), since)


def in_prefix(key: ContentKey, prefix: ContentKey | None) -> bool:
    """Whether a key is the prefix or lies below it."""
    return prefix is None or key.starts_with(prefix)
