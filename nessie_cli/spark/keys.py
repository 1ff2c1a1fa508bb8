"""The tables `entries`, `contents` and `diff`: keys of a commit or of a diff, by key ranges."""

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
from nessie_cli.spark.options import ReadOptions
from nessie_cli.spark.pushdown import ColumnKind, PushedFilters
from nessie_cli.spark.table import PinnedState, Row, SourceTable, in_prefix, pin_heads

_PER_DIFFERENCE = 10
"""A diff skips equal subtrees, so its ranges have more keys than those of a listing."""

_REFERENCE = column("reference", TEXT, "The given reference; null for a hash")

ENTRIES_SCHEMA = StructType(
    [
        _REFERENCE,
        column("hash", TEXT, "The commit", nullable=False),
        *KEY_COLUMNS,
        column("type", TEXT, "The type of the content", nullable=False),
        column(
            "content_id",
            TEXT,
            "The content id: constant, through renames and merges",
            nullable=False,
        ),
        column(
            "value_hash",
            TEXT,
            "The hash of the content: equal contents have equal hashes, on every branch",
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
        column("before", CONTENT, "The content before; null for none"),
        column("after", CONTENT, "The content after; null for none"),
    ]
)


class KeyPart(Struct, frozen=True):
    """A range of keys of a commit: after `above`, up to `upto`, below `prefix`; or just `keys`.

    `since` is the hash of the commit before, for a diff.
    """

    reference: str | None
    hash: str
    since: str | None = None
    above: ContentKey | None = None
    upto: ContentKey | None = None
    prefix: ContentKey | None = None
    keys: tuple[ContentKey, ...] | None = None

    def range(self) -> KeyRange:
        """The range to list. `chosen` filters it further."""
        if self.keys is not None:
            return KeyRange(keys=self.keys)
        if self.above is None and self.upto is None:
            return KeyRange(prefix=self.prefix)
        return KeyRange(minimum=self.above or self.prefix, maximum=self.upto)

    def cut(self, cuts: Iterable[ContentKey]) -> list[KeyPart]:
        """Splits the range at keys. Each part includes its upper bound."""
        return [
            structs.replace(self, above=low, upto=high)
            for low, high in pairwise([None, *cuts, None])
        ]


T = TypeVar("T", Entry, DiffEntry)


def _chosen(items: Iterable[T], part: KeyPart) -> Iterator[T]:
    return (
        item
        for item in takewhile(lambda item: in_prefix(item.key, part.prefix), items)
        if item.key != part.above
    )


def plan_keys(
    repository: Repository, options: ReadOptions, pinned: PinnedState, filters: PushedFilters
) -> list[KeyPart]:
    """Returns the key ranges of each commit."""
    plan = []
    for head in pinned.heads:
        if filters.matches(head.name):
            plan += _ranges(
                repository,
                options,
                KeyPart(head.name or None, head.hash, prefix=options.key_prefix),
                filters,
            )
    return plan


def _ranges(
    repository: Repository, options: ReadOptions, whole: KeyPart, filters: PushedFilters
) -> list[KeyPart]:
    """Returns the given keys in parts of about equal size."""
    if filters.keys is not None:
        keys = tuple(sorted(key for key in filters.keys if in_prefix(key, whole.prefix)))
        return [structs.replace(whole, keys=keys)] if keys else []
    most = options.rows * (_PER_DIFFERENCE if whole.since else 1)
    return whole.cut(repository.divisions(f"@{whole.hash}", most, prefix=whole.prefix) or [])


def _entry_rows(repository: Repository, part: KeyPart) -> Iterator[Row]:
    for entry in entries_of(repository, part, content=False):
        yield entry_row(part, entry)


def entry_row(part: KeyPart, entry: Entry) -> Row:
    """Returns the values of `ENTRIES_SCHEMA`."""
    return (
        part.reference,
        part.hash,
        *key_values(entry.key),
        entry.type,
        entry.content_id,
        entry.value_hash,
    )


def entries_of(repository: Repository, part: KeyPart, *, content: bool = True) -> Iterator[Entry]:
    """Yields the entries of a part, with or without contents."""
    return _chosen(repository.entries(f"@{part.hash}", part.range(), content=content), part)


def _content_rows(repository: Repository, part: KeyPart) -> Iterator[Row]:
    for entry in entries_of(repository, part):
        yield (*entry_row(part, entry), content_row(entry.content))


def pin_two(repository: Repository, options: ReadOptions) -> PinnedState:
    """Pins the options `from` and `to`, of which each is one revision."""
    if options.since is None:
        raise InvalidInput("option 'from' is missing", hint="set it to the earlier revision")
    pinned = pin_heads(repository, options)
    if len(pinned.heads) != 1:
        raise InvalidInput("option 'to' must be one revision")
    return pinned


def _plan_diff(
    repository: Repository, options: ReadOptions, pinned: PinnedState, filters: PushedFilters
) -> list[KeyPart]:
    (head,) = pinned.heads
    return (
        []
        if pinned.since == head.hash
        else _ranges(
            repository,
            options,
            KeyPart(None, head.hash, pinned.since, prefix=options.key_prefix),
            filters,
        )
    )


def _diff_rows(repository: Repository, part: KeyPart) -> Iterator[Row]:
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
NARROWED = {"reference": ColumnKind.NAME, "key": ColumnKind.KEY}

ENTRIES = SourceTable("entries", STATE, ENTRIES_SCHEMA, NARROWED, pin_heads, plan_keys, _entry_rows)
CONTENTS = SourceTable(
    "contents", STATE, CONTENTS_SCHEMA, NARROWED, pin_heads, plan_keys, _content_rows
)
DIFF = SourceTable(
    "diff",
    frozenset({"from", "to", "ref", "at", "prefix"}),
    DIFF_SCHEMA,
    {"key": ColumnKind.KEY},
    pin_two,
    _plan_diff,
    _diff_rows,
)
