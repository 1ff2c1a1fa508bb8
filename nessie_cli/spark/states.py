"""The tables `entries`, `contents` and `diff`: the keys of a state, or of the difference of two, by ranges of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from typing import TypeVar

from msgspec import Struct, structs
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, DiffEntry, Entry, KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.spark.columns import CONTENT, KEY_COLUMNS, TEXT, column, content_row, key_values
from nessie_cli.spark.narrowing import Kind, Narrowing
from nessie_cli.spark.options import Asked
from nessie_cli.spark.table import Pinned, Row, Table, in_prefix, pin_heads

_PER_DIFFERENCE = 10
"""A difference skips what is equal, so its ranges hold more keys than those of a listing."""

_REFERENCE = column("reference", TEXT, "The reference asked for; null where a hash was")

ENTRIES_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit whose state this is", nullable=False),
        *KEY_COLUMNS,
        column("type", TEXT, "The type of the content", nullable=False),
        column(
            "content_id",
            TEXT,
            "The content id: kept for life, through renames and merges",
            nullable=False,
        ),
        column(
            "value_hash",
            TEXT,
            "The hash of the content: equal ones are equal contents, on every branch",
            nullable=False,
        ),
    ]
)
CONTENTS_SCHEMA = StructType(
    [*ENTRIES_SCHEMA.fields, column("content", CONTENT, "The content", nullable=False)]
)
DIFF_SCHEMA = StructType(
    [
        column("from_hash", TEXT, "The commit before", nullable=False),
        column("to_hash", TEXT, "The commit after", nullable=False),
        *KEY_COLUMNS,
        column("change", TEXT, "ADDED, REMOVED or CHANGED", nullable=False),
        column("before", CONTENT, "The content before; null where there was none"),
        column("after", CONTENT, "The content after; null where there is none"),
    ]
)


class SomeKeys(Struct, frozen=True):
    """The keys of a state above `above`, not above `upto`, and below `prefix`; or just `keys`.

    `since` is the hash of the state before, where the difference is asked for.
    """

    reference: str | None
    hash: str
    since: str | None = None
    above: ContentKey | None = None
    upto: ContentKey | None = None
    prefix: ContentKey | None = None
    keys: tuple[ContentKey, ...] | None = None

    def range(self) -> KeyRange:
        """The keys to be listed; `chosen` leaves out what is too much."""
        if self.keys is not None:
            return KeyRange(keys=self.keys)
        if self.above is None and self.upto is None:
            return KeyRange(prefix=self.prefix)
        return KeyRange(minimum=self.above or self.prefix, maximum=self.upto)

    def cut(self, cuts: Iterable[ContentKey]) -> list[SomeKeys]:
        """The same keys in pieces, each up to a cut and including it, the last one up to the end."""
        return [
            structs.replace(self, above=low, upto=high)
            for low, high in pairwise([None, *cuts, None])
        ]


T = TypeVar("T", Entry, DiffEntry)


def _chosen(found: Iterable[T], part: SomeKeys) -> Iterator[T]:
    return (
        item
        for item in takewhile(lambda item: in_prefix(item.key, part.prefix), found)
        if item.key != part.above
    )


def plan_keys(
    repository: Repository, asked: Asked, pinned: Pinned, wanted: Narrowing
) -> list[SomeKeys]:
    """The ranges of keys of each state."""
    plan = []
    for head in pinned.heads:
        if wanted.wants(head.name):
            plan += _ranges(
                repository,
                asked,
                SomeKeys(head.name or None, head.hash, prefix=asked.key_prefix),
                wanted,
            )
    return plan


def _ranges(
    repository: Repository, asked: Asked, whole: SomeKeys, wanted: Narrowing
) -> list[SomeKeys]:
    """The keys that are asked for, in parts of about equal size."""
    if wanted.keys is not None:
        keys = tuple(sorted(key for key in wanted.keys if in_prefix(key, whole.prefix)))
        return [structs.replace(whole, keys=keys)] if keys else []
    most = asked.rows * (_PER_DIFFERENCE if whole.since else 1)
    return whole.cut(repository.divisions(f"@{whole.hash}", most, prefix=whole.prefix) or [])


def _entry_rows(repository: Repository, part: SomeKeys) -> Iterator[Row]:
    for entry in entries_of(repository, part, content=False):
        yield (
            part.reference,
            part.hash,
            *key_values(entry.key),
            entry.type,
            entry.content_id,
            entry.value_hash,
        )


def entries_of(repository: Repository, part: SomeKeys, *, content: bool = True) -> Iterator[Entry]:
    """The entries of a piece, with their contents or without."""
    return _chosen(repository.entries(f"@{part.hash}", part.range(), content=content), part)


def _content_rows(repository: Repository, part: SomeKeys) -> Iterator[Row]:
    for entry in entries_of(repository, part):
        values = (entry.type, entry.content_id, entry.value_hash, content_row(entry.content))
        yield (part.reference, part.hash, *key_values(entry.key), *values)


def _pin_two(repository: Repository, asked: Asked) -> Pinned:
    if asked.since is None:
        raise InvalidInput("option from: is missing; it names the state before")
    pinned = pin_heads(repository, asked)
    if len(pinned.heads) != 1:
        raise InvalidInput("option to: a difference has one end")
    return pinned


def _plan_diff(
    repository: Repository, asked: Asked, pinned: Pinned, wanted: Narrowing
) -> list[SomeKeys]:
    (head,) = pinned.heads
    return (
        []
        if pinned.since == head.hash
        else _ranges(
            repository,
            asked,
            SomeKeys(None, head.hash, pinned.since, prefix=asked.key_prefix),
            wanted,
        )
    )


def _diff_rows(repository: Repository, part: SomeKeys) -> Iterator[Row]:
    for entry in _chosen(repository.diff(f"@{part.since}", f"@{part.hash}", part.range()), part):
        change = (
            "ADDED" if entry.before is None else "REMOVED" if entry.after is None else "CHANGED"
        )
        yield (
            part.since,
            part.hash,
            *key_values(entry.key),
            change,
            content_row(entry.before),
            content_row(entry.after),
        )


STATE = frozenset({"ref", "at", "prefix"})
NARROWED = {"reference": Kind.NAME, "key": Kind.KEY}

ENTRIES = Table("entries", STATE, ENTRIES_SCHEMA, NARROWED, pin_heads, plan_keys, _entry_rows)
CONTENTS = Table("contents", STATE, CONTENTS_SCHEMA, NARROWED, pin_heads, plan_keys, _content_rows)
DIFF = Table(
    "diff",
    frozenset({"from", "to", "ref", "at", "prefix"}),
    DIFF_SCHEMA,
    {"key": Kind.KEY},
    _pin_two,
    _plan_diff,
    _diff_rows,
)
