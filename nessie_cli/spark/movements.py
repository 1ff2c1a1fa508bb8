"""The tables `references` and `reflog`, and `conflicts`: what a merge would meet."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from pyspark.sql.types import StructType

from nessie_cli.errors import InvalidInput, MergeConflict
from nessie_cli.model import NO_ANCESTOR, CommitMeta, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.spark.columns import (
    COMMIT,
    CONTENT,
    LONG,
    RENAME,
    TEXT,
    TIME,
    column,
    commit_row,
    content_row,
    rename_row,
)
from nessie_cli.spark.narrowing import Kind, Narrowing
from nessie_cli.spark.options import Asked
from nessie_cli.spark.table import Pinned, Row, Table, created, pin_heads

_REFERENCES_PER_PARTITION = 500

REFERENCES_SCHEMA = StructType(
    [
        column("name", TEXT, "The branch or tag", nullable=False),
        column("type", TEXT, "BRANCH or TAG", nullable=False),
        column("hash", TEXT, "The commit that it names", nullable=False),
        column("commits", LONG, "Its commits along first parents", nullable=False),
        column(
            "ahead",
            LONG,
            "Commits of a branch that the default branch has not; null for that one and for tags",
        ),
        column("behind", LONG, "Commits of the default branch that this branch has not"),
        column("common_ancestor", TEXT, "The newest commit that both have"),
        column("head", COMMIT, "The commit that it names; null for the empty history"),
    ]
)


class SomeReferences(Struct, frozen=True):
    """References as they stood when the frame was made, and the default branch beside them."""

    references: tuple[Reference, ...]
    default: Reference


def _pin_references(repository: Repository, asked: Asked) -> Pinned:
    default = repository.config().default_branch
    listed = tuple(repository.references())
    # The default branch comes first, whether it is asked for or not: distances are from it.
    first = [found for found in listed if found.name == default]
    return Pinned(
        created(repository),
        (*first, *(found for found in listed if found.name.startswith(asked.prefix or ""))),
    )


def _plan_references(
    repository: Repository,  # noqa: ARG001
    asked: Asked,
    pinned: Pinned,
    wanted: Narrowing,
) -> list[SomeReferences]:
    default, *listed = pinned.heads
    chosen = tuple(found for found in listed if wanted.wants(found.name))
    size = min(asked.rows, _REFERENCES_PER_PARTITION)
    return [
        SomeReferences(chosen[first : first + size], default)
        for first in range(0, len(chosen), size)
    ]


def _reference_rows(repository: Repository, part: SomeReferences) -> Iterator[Row]:
    heads: dict[str, CommitMeta | None] = {NO_ANCESTOR: None}
    for found in part.references:
        if found.hash not in heads:
            heads[found.hash] = next(iter(repository.log(f"@{found.hash}"))).meta
        commits = repository.ahead_behind(f"@{found.hash}", f"@{NO_ANCESTOR}").ahead
        apart: Row = (None, None, None)
        if found.type is ReferenceType.BRANCH and found.name != part.default.name:
            distance = repository.ahead_behind(f"@{found.hash}", f"@{part.default.hash}")
            apart = (distance.ahead, distance.behind, distance.common_ancestor)
        yield (
            found.name,
            found.type.value,
            found.hash,
            commits,
            *apart,
            commit_row(heads[found.hash]),
        )


REFERENCES = Table(
    "references",
    frozenset({"prefix"}),
    REFERENCES_SCHEMA,
    {"name": Kind.NAME},
    _pin_references,
    _plan_references,
    _reference_rows,
)

# -- reflog -------------------------------------------------------------------------------------------------------------------------------

REFLOG_SCHEMA = StructType(
    [
        column("number", LONG, "Counts up in the whole repository", nullable=False),
        column("reference", TEXT, "The branch or tag that moved", nullable=False),
        column("type", TEXT, "BRANCH or TAG", nullable=False),
        column("before", TEXT, "Where it stood; null for a creation"),
        column("after", TEXT, "Where it went; null for a deletion"),
        column("time", TIME, "When", nullable=False),
        column("who", TEXT, "Who moved it", nullable=False),
        column(
            "operation",
            TEXT,
            "commit, merge, transplant, create, assign, rename or delete",
            nullable=False,
        ),
        column("message", TEXT, "What was said about it", nullable=False),
        column("request_id", TEXT, "The id of the request that did it", nullable=False),
    ]
)


class SomeMoves(Struct, frozen=True):
    """The moves of a reference (of any for None), up to the number that was the newest."""

    reference: str | None
    newest: int


def _pin_reflog(repository: Repository, asked: Asked) -> Pinned:
    if asked.references and len(asked.references) > 1:
        raise InvalidInput("option ref: a reflog is that of one reference, or of all")
    newest = next(iter(repository.reflog(limit=1)), None)
    return Pinned(created(repository), newest=newest.number if newest else 0)


def _plan_reflog(
    repository: Repository,  # noqa: ARG001
    asked: Asked,
    pinned: Pinned,
    wanted: Narrowing,
) -> list[SomeMoves]:
    only = None if asked.references in (None, ("*",)) else asked.references[0]
    names = (
        {only} if wanted.names is None else wanted.names if only is None else wanted.names & {only}
    )
    return [SomeMoves(name, pinned.newest) for name in sorted(names, key=str)]


def _reflog_rows(repository: Repository, part: SomeMoves) -> Iterator[Row]:
    for entry in repository.reflog(part.reference):
        if entry.number <= part.newest:
            moved = (
                entry.before,
                entry.after,
                entry.time,
                entry.who,
                entry.operation,
                entry.message,
                entry.request_id,
            )
            yield (entry.number, entry.reference, entry.type.value, *moved)


REFLOG = Table(
    "reflog",
    frozenset({"ref"}),
    REFLOG_SCHEMA,
    {"reference": Kind.NAME},
    _pin_reflog,
    _plan_reflog,
    _reflog_rows,
)

# -- conflicts ----------------------------------------------------------------------------------------------------------------------------

CONFLICTS_SCHEMA = StructType(
    [
        column("branch", TEXT, "The branch that would be merged into", nullable=False),
        column("from_hash", TEXT, "The commit that would be merged", nullable=False),
        column("key", TEXT, "The key in conflict"),
        column(
            "conflict",
            TEXT,
            "The type of the conflict (VALUE_DIFFERS, KEY_EXISTS, ...)",
            nullable=False,
        ),
        column("message", TEXT, "What is wrong, in words", nullable=False),
        column("expected", CONTENT, "The content where both sides still agreed; null for none"),
        column("actual", CONTENT, "The content on the branch; null for none"),
        column("proposed", CONTENT, "The content that would be merged; null for none"),
        column("changed_by", COMMIT, "The commit on the branch that changed it"),
        column("source_rename", RENAME, "Where it was renamed on the side that would be merged"),
        column("target_rename", RENAME, "Where it was renamed on the branch"),
    ]
)


class Merge(Struct, frozen=True):
    """A merge that is only judged."""

    branch: str
    source: str


def _pin_merge(repository: Repository, asked: Asked) -> Pinned:
    if asked.since is None:
        raise InvalidInput("option from: is missing; it names what would be merged")
    pinned = pin_heads(repository, asked)
    if len(pinned.heads) != 1 or pinned.heads[0].type is not ReferenceType.BRANCH:
        raise InvalidInput("option to: names the one branch that would be merged into")
    return pinned


def _plan_merge(
    repository: Repository,  # noqa: ARG001
    asked: Asked,  # noqa: ARG001
    pinned: Pinned,
    wanted: Narrowing,  # noqa: ARG001
) -> list[Merge]:
    assert pinned.since is not None
    return [Merge(pinned.heads[0].name, pinned.since)]


def _conflict_rows(repository: Repository, part: Merge) -> Iterator[Row]:
    try:
        repository.merge(part.branch, f"@{part.source}", MergeOptions(dry_run=True))
    except MergeConflict as refused:
        for found in refused.conflicts:
            contents = map(content_row, (found.expected, found.actual, found.proposed))
            renames = map(rename_row, (found.source_rename, found.target_rename))
            key = str(found.key) if found.key else None
            yield (
                part.branch,
                part.source,
                key,
                found.type.value,
                found.message,
                *contents,
                commit_row(found.changed_by),
                *renames,
            )


CONFLICTS = Table(
    "conflicts",
    frozenset({"from", "to", "ref"}),
    CONFLICTS_SCHEMA,
    {},
    _pin_merge,
    _plan_merge,
    _conflict_rows,
)
