"""Arguments and results of the methods of a repository."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, json

from nessie_cli.model.conflicts import (
    Collision,
    Conflict,
    ContentPlace,
    MergeBehavior,
    MergeOption,
)
from nessie_cli.model.contents import Content, IcebergTable
from nessie_cli.model.keys import ContentKey
from nessie_cli.model.references import Reference


class KeyBehavior(Struct, frozen=True):
    """The behavior of one key.

    `expected_target` is the target's content that the caller has seen; another one is a conflict.
    `resolved` is written instead of the source's content; it needs NORMAL and `expected_target`.
    Both need a content id.

    In a merge per content, the behavior is for the content that has the key on ours, else on
    theirs, else at the base, or for the content with `content_id`. In a transplant, it is for one
    `commit` (a hash), or for all. `is_combined` is whether the program itself combined `resolved`
    from both sides.
    """

    key: ContentKey
    behavior: MergeBehavior = MergeBehavior.NORMAL
    expected_target: Content | None = None
    resolved: Content | None = None
    content_id: str | None = None
    commit: str | None = None
    is_combined: bool = False


class Entry(Struct, frozen=True):
    """A key of a commit's state.

    `content` is None if it was not requested. `value_hash` is the hash of the content.
    """

    key: ContentKey
    type: str
    content_id: str
    value_hash: str
    content: Content | None = None

    @property
    def cache_key(self) -> str:
        """Identifies this content in every commit, branch and repository: `<id>:<hash>`."""
        return f"{self.content_id}:{self.value_hash}"


class DiffEntry(Struct, frozen=True):
    """A key whose content differs; `before` or `after` is None if it is absent on that side."""

    key: ContentKey
    before: Content | None
    after: Content | None


class ChangedKey(Struct, frozen=True):
    """A key that a commit changed, without contents.

    `before` and `after` are true if the key existed. `content_id` is its last content id.
    """

    key: ContentKey
    content_id: str
    before: bool
    after: bool


class KeyRange(Struct, frozen=True):
    """The keys that a listing covers.

    Those of `keys` (default: all) from `minimum` to `maximum` (inclusive), or at and below
    `prefix`. A prefix together with a bound is an error.
    """

    keys: tuple[ContentKey, ...] | None = None
    minimum: ContentKey | None = None
    maximum: ContentKey | None = None
    prefix: ContentKey | None = None


class CommitResult(Struct, frozen=True):
    """The result of a commit.

    `reference` is the branch after the commit. `added` maps the key of each new content to the id
    that it was given. `applied` is False for a dry run.
    """

    reference: Reference
    added: Mapping[ContentKey, str] = {}
    applied: bool = True


class RowDecision(Struct, frozen=True):
    """The side that is taken for a row in conflict, or for one of its cells.

    `key` is the text of the row's key (`row_key_text`), and `column` None for the row.
    """

    table: ContentKey
    key: str
    column: str | None
    takes_theirs: bool


def row_key_text(key: Mapping[str, Any]) -> str:
    """Returns the text that stands for the key of a row: its values as JSON, by column."""
    return json.encode(dict(key), order="sorted").decode()


class RowRules(Struct, frozen=True):
    """How rows are merged if the files of a table do not combine.

    `key` are the columns that identify a row; by default, the identifier fields of the table. With
    `whole_rows`, a row that both sides changed is a conflict. The sides are taken for all
    conflicts of the tables at the keys `ours` and `theirs`, and `decisions` for single ones. `keys`
    are the columns that identify the rows of single tables.
    """

    key: tuple[str, ...] = ()
    whole_rows: bool = False
    ours: tuple[ContentKey, ...] = ()
    theirs: tuple[ContentKey, ...] = ()
    decisions: tuple[RowDecision, ...] = ()
    keys: tuple[tuple[ContentKey, tuple[str, ...]], ...] = ()

    def key_of(self, tables: Container[ContentKey]) -> tuple[str, ...]:
        """Returns the columns that identify a row of a table, which has some keys."""
        return next((columns for table, columns in self.keys if table in tables), self.key)


class CombinationRules(Struct, frozen=True):
    """How the tables that both sides of a merge changed combine.

    With `is_serializable`, tables that set no isolation are serializable. With
    `refuses_same_keys`, added rows that may have equal identifiers are a conflict. Tables at the
    keys `excluded` do not combine. `rows` says how rows are merged; None if they are not.
    """

    is_serializable: bool = False
    refuses_same_keys: bool = False
    excluded: tuple[ContentKey, ...] = ()
    rows: RowRules | None = None


class TableCombination(Struct, frozen=True):
    """The changes that a combined table has beside ours, from theirs.

    Rows are those of data files, without the rows that position deletes of theirs remove or that
    its removal of such deletes restores. A number of rows is None if equality deletes change it:
    they do not say how many rows they delete. `notes` are texts about changes of theirs that were
    left out, and about possible problems.
    """

    added_files: int
    removed_files: int
    added_rows: int | None
    removed_rows: int | None
    notes: tuple[str, ...] = ()


class CombinedTable(Struct, frozen=True):
    """The combination of a table: its content and its changes, or why the sides do not combine."""

    content: IcebergTable | None = None
    combination: TableCombination | None = None
    collisions: tuple[Collision, ...] = ()


class MergeDetail(Struct, frozen=True):
    """A key that a merge or transplant touched.

    `target` is its content on the target before, `result` the one after. `source` is the content on
    the source, in a merge per content under whatever key. `behavior` is the side of the result, or
    NORMAL if it is merged or in conflict. In a merge per content, `source_at` and `result_at` are
    places of the contents `source` and `result`, and `is_resolved` is whether the caller supplied
    the result, which then has no place. `combination` is set if the result combines the
    files of both sides.
    """

    key: ContentKey
    behavior: MergeBehavior
    conflict: Conflict | None = None
    source: Content | None = None
    target: Content | None = None
    result: Content | None = None
    source_at: ContentPlace | None = None
    result_at: ContentPlace | None = None
    is_resolved: bool = False
    combination: TableCombination | None = None


class MergeResult(Struct, frozen=True):
    """The result of a merge or transplant, or of its dry run.

    `effective_target_hash` is the HEAD of the branch before. `resultant_hash` is its HEAD
    afterwards, None for a conflict or a dry run (unless the source is merged already).
    `common_ancestor` is None for a transplant. `applied` is whether the branch has moved,
    `successful` whether there is no conflict. `skipped` are the hashes of transplanted commits
    whose changes the branch already had. `has_several_bases` is whether the merge has several merge
    bases: then the base of a conflict need not be a state of any commit. `decided` is what the
    given decisions do to contents; it is set only with conflicts.
    """

    target_branch: str
    effective_target_hash: str
    resultant_hash: str | None
    common_ancestor: str | None
    expected_hash: str | None
    applied: bool
    successful: bool
    details: tuple[MergeDetail, ...] = ()
    skipped: tuple[str, ...] = ()
    has_several_bases: bool = False
    decided: MergeOption | None = None

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts of all details."""
        return tuple(d.conflict for d in self.details if d.conflict)


class RepositoryConfig(Struct, frozen=True):
    """The default branch of a repository, its creation, its format, and its settings by name.

    `created` is None if it is unknown. `format` is the number of the store format, or `REST` and
    the version of the specification for a server. Only `nessie serve` and stores have settings.
    `hides_settings` says that the caller may not read them.
    """

    default_branch: str
    created: datetime | None
    format: str
    settings: Mapping[str, str] = {}
    hides_settings: bool = False


class ProblemKind(StrEnum):
    """What `fsck` can find."""

    DAMAGED = "DAMAGED"
    MISSING = "MISSING"
    BROKEN_LINK = "BROKEN_LINK"
    WRONG_SHAPE = "WRONG_SHAPE"
    BAD_REFERENCE = "BAD_REFERENCE"
    DUPLICATE_ID = "DUPLICATE_ID"


class Problem(Struct, frozen=True):
    """Something wrong in a store: `where` names the object or reference.

    `replaceable` is a branch and a key: a replacement of the key's content on the branch (`nessie
    content replace`) repairs the problem.
    """

    kind: ProblemKind
    where: str
    message: str
    replaceable: tuple[str, ContentKey] | None = None


class Reclaimed(Struct, frozen=True):
    """The number and bytes of objects of one kind that were deleted, or would be in a dry run."""

    objects: int
    size: int


class MaintenanceReport(Struct, frozen=True):
    """What maintenance of a store did, or would do in a dry run.

    `moves` and `requests` count expired entries of the reflog and request ids. `reclaimed` is by
    the kind of object: `commit`, `node`, `value`. `kept` counts the objects that stay. Sizes of the
    store are in bytes on disk, before and after; `free` bytes of them are unused and will be used
    for new data (None: not known).
    """

    moves: int
    requests: int
    reclaimed: Mapping[str, Reclaimed]
    kept: int
    size_before: int
    size_after: int
    free: int | None
    dry_run: bool


class AheadBehind(Struct, frozen=True):
    """The numbers of first-parent commits of each side since the common ancestor, a hash."""

    ahead: int
    behind: int
    common_ancestor: str
