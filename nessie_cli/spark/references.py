"""The tables `references`, `reflog` and `conflicts` (the conflicts of a possible merge)."""

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
from nessie_cli.spark.options import ReadOptions
from nessie_cli.spark.pushdown import ColumnKind, PushedFilters
from nessie_cli.spark.table import PinnedState, Row, SourceTable, created, pin_heads

_REFERENCES_PER_PARTITION = 500

REFERENCES_SCHEMA = StructType(
    [
        column("name", TEXT, "The branch or tag", nullable=False),
        column("type", TEXT, "BRANCH or TAG", nullable=False),
        column("hash", TEXT, "The commit that it points to", nullable=False),
        column("commits", LONG, "The number of its first parents", nullable=False),
        column(
            "ahead",
            LONG,
            (
                "Commits that the default branch does not contain; null for the default branch"
                " and tags"
            ),
        ),
        column("behind", LONG, "Commits of the default branch that this branch does not contain"),
        column("common_ancestor", TEXT, "The newest common commit"),
        column("head", COMMIT, "The commit that it points to; null for the empty history"),
    ]
)


class ReferencePart(Struct, frozen=True):
    """References and the default branch, at the time when the frame was created."""

    references: tuple[Reference, ...]
    default: Reference


def _pin_references(repository: Repository, options: ReadOptions) -> PinnedState:
    default = repository.config().default_branch
    listed = tuple(repository.references())
    # The default branch comes first, even if it is not selected: distances are relative to it.
    first = [reference for reference in listed if reference.name == default]
    return PinnedState(
        created(repository),
        (
            *first,
            *(reference for reference in listed if reference.name.startswith(options.prefix or "")),
        ),
    )


def _plan_references(
    repository: Repository,  # noqa: ARG001
    options: ReadOptions,
    pinned: PinnedState,
    filters: PushedFilters,
) -> list[ReferencePart]:
    default, *listed = pinned.heads
    chosen = tuple(reference for reference in listed if filters.matches(reference.name))
    size = min(options.rows, _REFERENCES_PER_PARTITION)
    return [
        ReferencePart(chosen[first : first + size], default)
        for first in range(0, len(chosen), size)
    ]


def _reference_rows(repository: Repository, part: ReferencePart) -> Iterator[Row]:
    heads: dict[str, CommitMeta | None] = {NO_ANCESTOR: None}
    for reference in part.references:
        if reference.hash not in heads:
            heads[reference.hash] = next(iter(repository.log(f"@{reference.hash}"))).meta
        commits = repository.ahead_behind(f"@{reference.hash}", f"@{NO_ANCESTOR}").ahead
        apart: Row = (None, None, None)
        if reference.type is ReferenceType.BRANCH and reference.name != part.default.name:
            distance = repository.ahead_behind(f"@{reference.hash}", f"@{part.default.hash}")
            apart = (distance.ahead, distance.behind, distance.common_ancestor)
        yield (
            reference.name,
            reference.type.value,
            reference.hash,
            commits,
            *apart,
            commit_row(heads[reference.hash]),
        )


REFERENCES = SourceTable(
    "references",
    frozenset({"prefix"}),
    REFERENCES_SCHEMA,
    {"name": ColumnKind.NAME},
    _pin_references,
    _plan_references,
    _reference_rows,
)

# -- reflog ---------------------------------------------------------------------------------------

REFLOG_SCHEMA = StructType(
    [
        column("number", LONG, "The number of the move in the repository", nullable=False),
        column("reference", TEXT, "The branch or tag that moved", nullable=False),
        column("type", TEXT, "BRANCH or TAG", nullable=False),
        column("before", TEXT, "The commit before; null for a creation"),
        column("after", TEXT, "The commit after; null for a deletion"),
        column("time", TIME, "When", nullable=False),
        column("who", TEXT, "The user who moved it", nullable=False),
        column(
            "operation",
            TEXT,
            "commit, merge, transplant, create, assign, rename or delete",
            nullable=False,
        ),
        column("message", TEXT, "The message", nullable=False),
        column("request_id", TEXT, "The id of the request", nullable=False),
    ]
)


class ReflogPart(Struct, frozen=True):
    """The moves of a reference (None: of all) up to a number."""

    reference: str | None
    newest: int


def _pin_reflog(repository: Repository, options: ReadOptions) -> PinnedState:
    if options.references and len(options.references) > 1:
        raise InvalidInput("option ref: the reflog is that of one reference, or of all")
    newest = next(iter(repository.reflog(limit=1)), None)
    return PinnedState(created(repository), newest=newest.number if newest else 0)


def _plan_reflog(
    repository: Repository,  # noqa: ARG001
    options: ReadOptions,
    pinned: PinnedState,
    filters: PushedFilters,
) -> list[ReflogPart]:
    only = None if options.references in (None, ("*",)) else options.references[0]
    if filters.names is None:
        return [ReflogPart(only, pinned.newest)]
    names = filters.names if only is None else filters.names & {only}
    return [ReflogPart(name, pinned.newest) for name in sorted(names)]


def _reflog_rows(repository: Repository, part: ReflogPart) -> Iterator[Row]:
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


REFLOG = SourceTable(
    "reflog",
    frozenset({"ref"}),
    REFLOG_SCHEMA,
    {"reference": ColumnKind.NAME},
    _pin_reflog,
    _plan_reflog,
    _reflog_rows,
)

# -- conflicts ------------------------------------------------------------------------------------

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
        column("message", TEXT, "The message", nullable=False),
        column("expected", CONTENT, "The content at the merge base; null for none"),
        column("actual", CONTENT, "The content on the branch; null for none"),
        column("proposed", CONTENT, "The content that would be merged; null for none"),
        column("changed_by", COMMIT, "The commit on the branch that changed it"),
        column("source_rename", RENAME, "The rename on the side that would be merged"),
        column("target_rename", RENAME, "The rename on the branch"),
    ]
)


class PendingMerge(Struct, frozen=True):
    """A merge that is not committed."""

    branch: str
    source: str


def _pin_merge(repository: Repository, options: ReadOptions) -> PinnedState:
    if options.since is None:
        raise InvalidInput("option 'from' is missing", hint="set it to the revision to merge")
    pinned = pin_heads(repository, options)
    if len(pinned.heads) != 1 or pinned.heads[0].type is not ReferenceType.BRANCH:
        raise InvalidInput("option 'to' must be one branch, the target of the merge")
    return pinned


def _plan_merge(
    repository: Repository,  # noqa: ARG001
    options: ReadOptions,  # noqa: ARG001
    pinned: PinnedState,
    filters: PushedFilters,  # noqa: ARG001
) -> list[PendingMerge]:
    assert pinned.since is not None
    return [PendingMerge(pinned.heads[0].name, pinned.since)]


def _conflict_rows(repository: Repository, part: PendingMerge) -> Iterator[Row]:
    try:
        repository.merge(part.branch, f"@{part.source}", MergeOptions(dry_run=True))
    except MergeConflict as refused:
        for conflict in refused.conflicts:
            contents = map(content_row, (conflict.expected, conflict.actual, conflict.proposed))
            renames = map(rename_row, (conflict.source_rename, conflict.target_rename))
            key = str(conflict.key) if conflict.key else None
            yield (
                part.branch,
                part.source,
                key,
                conflict.type.value,
                conflict.message,
                *contents,
                commit_row(conflict.changed_by),
                *renames,
            )


CONFLICTS = SourceTable(
    "conflicts",
    frozenset({"from", "to", "ref"}),
    CONFLICTS_SCHEMA,
    {},
    _pin_merge,
    _plan_merge,
    _conflict_rows,
)
