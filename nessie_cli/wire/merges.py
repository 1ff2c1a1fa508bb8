"""The structs of conflicts and merges in answers, each with `of` for a value of the model.

`answers` converts them back. An attribute with a plain default is left out if it has that value.
One with a factory is always written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Struct, UnsetType, field

from nessie_cli import model
from nessie_cli.wire.commits import CommitMeta, optional_meta
from nessie_cli.wire.contents import AnyContent, Key, optional_content, optional_key
from nessie_cli.wire.scalars import Behavior, ConflictKind, Hash, Null, empty_list


class Rename(Struct):
    """One side of a merge moved the content to another key."""

    old: Key = field(name="from")
    new: Key = field(name="to")
    by: CommitMeta | None = field(default_factory=NoneType)

    @classmethod
    def of(cls, rename: model.Rename) -> Self:
        """Returns the struct of a rename."""
        return cls(Key.of(rename.old), Key.of(rename.new), optional_meta(rename.by))


class KeyRename(Struct):
    """A content gets another key."""

    old: Key = field(name="from")
    new: Key = field(name="to")


class MergeOption(Struct, rename="camel"):
    """A possible decision about a conflict, and what it does to other contents."""

    behavior: Behavior
    deletes: list[Key] = field(default_factory=empty_list)
    renames: list[KeyRename] = field(default_factory=empty_list)
    leaves_out: list[Key] = field(default_factory=empty_list)

    @classmethod
    def of(cls, option: model.MergeOption) -> Self:
        """Returns the struct of a possible decision."""
        return cls(
            option.behavior.value,
            list(map(Key.of, option.deletes)),
            [KeyRename(Key.of(old), Key.of(new)) for old, new in option.renames],
            list(map(Key.of, option.leaves_out)),
        )


class CollidingFile(Struct):
    """A file of a table that is part of a collision."""

    path: str
    partition: str
    rows: int


class RowConflict(Struct):
    """A cell (or a whole row: `column` is null) that both sides of a table changed differently.

    `key` has the values of the row's key by column. Values are JSON; null is also a row that is
    not there.
    """

    kind: Literal["UPDATE_UPDATE", "INSERT_INSERT", "DELETE_UPDATE", "UPDATE_DELETE"]
    key: dict[str, Any]
    column: str | None
    base: Any
    ours: Any
    theirs: Any


class Collision(Struct, omit_defaults=True):
    """A reason why both sides of an Iceberg table do not combine, with the files and rows."""

    reason: str
    files: list[CollidingFile]
    rows: list[RowConflict] = []

    @classmethod
    def of(cls, collision: model.Collision) -> Self:
        """Returns the struct of a collision."""
        files = [CollidingFile(f.path, f.partition, f.rows) for f in collision.files]
        rows = [
            RowConflict(r.kind.value, dict(r.key), r.column, r.base, r.ours, r.theirs)
            for r in collision.rows
        ]
        return cls(collision.reason, files, rows)


class TableCombination(Struct, rename="camel"):
    """The changes of theirs that a combined table has beside ours.

    A number of rows is null if it is not known, because equality deletes change it.
    """

    added_files: int
    removed_files: int
    added_rows: int | None
    removed_rows: int | None
    notes: list[str]

    @classmethod
    def of(cls, combination: model.TableCombination) -> Self:
        """Returns the struct of a combination."""
        return cls(
            combination.added_files,
            combination.removed_files,
            combination.added_rows,
            combination.removed_rows,
            list(combination.notes),
        )


class BareConflict(Struct, rename="camel"):
    """A conflict as the REST API reports it."""

    conflict_type: ConflictKind
    key: Key | None = field(default_factory=NoneType)
    message: str = field(default_factory=str)

    @classmethod
    def of(cls, conflict: model.Conflict) -> Self:
        """Returns the struct of a conflict; the key is null if it is about a reference."""
        return cls(conflict.type.value, optional_key(conflict.key), conflict.message)


def content_in_conflict(conflict: model.Conflict) -> dict[str, Any]:
    """Returns the attributes of the content behind a conflict: its id, keys and renames."""
    attributes: dict[str, Any] = {
        name: Rename.of(rename)
        for name, rename in (
            ("source_rename", conflict.source_rename),
            ("target_rename", conflict.target_rename),
        )
        if rename
    }
    if conflict.same_file_key is not None:
        attributes["same_file_key"] = optional_key(conflict.same_file_key)
    if conflict.blocking_namespace is not None:
        attributes["blocking_namespace"] = optional_key(conflict.blocking_namespace)
    if conflict.content_id is None:
        return attributes
    attributes |= {
        "content_id": conflict.content_id,
        "base_key": optional_key(conflict.base_key),
        "theirs_key": optional_key(conflict.theirs_key),
        "key_is_ambiguous": conflict.is_ambiguous,
    }
    return attributes | ({"commit": conflict.commit} if conflict.commit else {})


class ContentPlace(Struct):
    """A commit and a key where a content can be read."""

    hash: Hash
    key: Key


def _place(place: model.ContentPlace | None) -> ContentPlace | None:
    return None if place is None else ContentPlace(place.hash, Key.of(place.key))


class ConflictOfOurs(BareConflict, omit_defaults=True, kw_only=True):
    """A conflict of a merge per content, as our servers send it to our clients.

    It has those contents that are in no commit: the caller supplied them, or the server combined
    them.
    """

    source_rename: Rename | None = None
    target_rename: Rename | None = None
    content_id: str | None = None
    base_key: Key | UnsetType | None = UNSET
    theirs_key: Key | UnsetType | None = UNSET
    value_key: Key | None = None
    key_is_ambiguous: bool | UnsetType = UNSET
    commit: Hash | None = None
    same_file_key: Key | None = None
    blocking_namespace: Key | None = None
    options: list[MergeOption] = []
    collisions: list[Collision] = []
    actual_at: ContentPlace | None = None
    proposed_at: ContentPlace | None = None
    actual: AnyContent | None = None
    proposed: AnyContent | None = None
    changed_key: Key | None = None

    @classmethod
    def of(cls, conflict: model.Conflict) -> Self:
        """Returns the struct of a conflict, with the content behind it."""
        return cls(
            conflict.type.value,
            optional_key(conflict.key),
            conflict.message,
            **content_in_conflict(conflict),
            value_key=optional_key(conflict.value_key),
            options=list(map(MergeOption.of, conflict.options)),
            collisions=list(map(Collision.of, conflict.collisions)),
            actual_at=_place(conflict.actual_at),
            proposed_at=_place(conflict.proposed_at),
            actual=None if conflict.actual_at else optional_content(conflict.actual),
            proposed=None if conflict.proposed_at else optional_content(conflict.proposed),
            changed_key=optional_key(conflict.changed_key),
        )


class CleanMergeDetail(Struct, rename="camel"):
    """A key of a merge without its conflict."""

    key: Key
    merge_behavior: Behavior = field(default_factory=lambda: "NORMAL")


class BareMergeDetail(CleanMergeDetail, omit_defaults=True):
    """A key of a merge, as the REST API reports it."""

    conflict: BareConflict | None = None

    @classmethod
    def of(cls, detail: model.MergeDetail) -> Self:
        """Returns the struct of a key of a merge."""
        conflict = None if detail.conflict is None else BareConflict.of(detail.conflict)
        return cls(Key.of(detail.key), detail.behavior.value, conflict)


class MergeDetailOfOurs(CleanMergeDetail, omit_defaults=True):
    """A key of a merge per content, as our servers send it to our clients.

    A content that the server itself combined is in no commit yet, so the detail contains it.
    """

    conflict: ConflictOfOurs | None = None
    source_at: ContentPlace | None = None
    result_at: ContentPlace | None = None
    is_resolved: bool = False
    resolved_content: AnyContent | None = None
    combination: TableCombination | None = None

    @classmethod
    def of(cls, detail: model.MergeDetail) -> Self:
        """Returns the struct of a key of a merge, with places of its contents."""
        combination = detail.combination
        return cls(
            Key.of(detail.key),
            detail.behavior.value,
            None if detail.conflict is None else ConflictOfOurs.of(detail.conflict),
            _place(detail.source_at),
            _place(detail.result_at),
            detail.is_resolved,
            optional_content(detail.result) if detail.is_resolved else None,
            None if combination is None else TableCombination.of(combination),
        )


class MergeOutcome(Struct, rename="camel", kw_only=True):
    """The outcome of a merge, without the details of its keys."""

    was_applied: bool = field(default_factory=bool)
    was_successful: bool = field(default_factory=bool)
    resultant_target_hash: Hash | None = field(default_factory=NoneType)
    common_ancestor: Hash | None = field(default_factory=NoneType)
    target_branch: str
    effective_target_hash: Hash | None = field(default_factory=NoneType)
    expected_hash: Hash | None = field(default_factory=NoneType)


def merge_outcome(result: model.MergeResult) -> dict[str, Any]:
    """Returns the attributes of the outcome of a merge."""
    return {
        "was_applied": result.applied,
        "was_successful": result.successful,
        "resultant_target_hash": result.resultant_hash,
        "common_ancestor": result.common_ancestor,
        "target_branch": result.target_branch,
        "effective_target_hash": result.effective_target_hash,
        "expected_hash": result.expected_hash,
    }


class BareMerge(MergeOutcome, kw_only=True):
    """What a merge would have done, as the REST API reports it."""

    details: list[BareMergeDetail] = field(default_factory=empty_list)

    @classmethod
    def of(cls, result: model.MergeResult) -> Self:
        """Returns the struct of the result of a merge or transplant."""
        return cls(**merge_outcome(result), details=list(map(BareMergeDetail.of, result.details)))


class MergeOfOurs(MergeOutcome, omit_defaults=True, kw_only=True):
    """A merge per content, as our servers send it to our clients."""

    details: list[MergeDetailOfOurs] = field(default_factory=empty_list)
    skipped_commits: list[Hash] = []
    has_several_bases: bool = False
    decided: MergeOption | None = None

    @classmethod
    def of(cls, result: model.MergeResult) -> Self:
        """Returns the struct of the result of a merge or transplant."""
        return cls(
            **merge_outcome(result),
            details=list(map(MergeDetailOfOurs.of, result.details)),
            skipped_commits=list(result.skipped),
            has_several_bases=result.has_several_bases,
            decided=None if result.decided is None else MergeOption.of(result.decided),
        )


class CombinedTable(Struct, omit_defaults=True):
    """A combined table, or why its sides do not combine, as our servers send it to our clients.

    Without any of it, the server has no access to the files.
    """

    content: AnyContent | None = None
    combination: TableCombination | None = None
    collisions: list[Collision] = []

    @classmethod
    def of(cls, table: model.CombinedTable) -> Self:
        """Returns the struct of a combined table."""
        combination = table.combination
        return cls(
            optional_content(table.content),
            None if combination is None else TableCombination.of(combination),
            list(map(Collision.of, table.collisions)),
        )


# -- version 1 -------------------------------------------------------------------------------------

Verdict = Annotated[str, Meta(extra_json_schema={"enum": ["NONE", "UNRESOLVABLE"]})]


class MergeDetailV1(CleanMergeDetail, kw_only=True):
    """A key of a merge, with the deprecated attributes that old clients require."""

    conflict_type: Verdict
    source_commits: list[str] = field(default_factory=empty_list)
    target_commits: list[str] = field(default_factory=empty_list)

    @classmethod
    def of(cls, detail: model.MergeDetail) -> Self:
        """Returns the struct of a key of a merge."""
        return cls(
            Key.of(detail.key),
            detail.behavior.value,
            conflict_type="UNRESOLVABLE" if detail.conflict else "NONE",
        )


class MergeResponseV1(MergeOutcome, kw_only=True):
    """What a merge or transplant did, with the deprecated attributes that old clients require."""

    details: list[MergeDetailV1]
    source_commits: list[str] = field(default_factory=empty_list)
    target_commits: Null = None

    @classmethod
    def of(cls, result: model.MergeResult) -> Self:
        """Returns the struct of the result of a merge or transplant."""
        return cls(**merge_outcome(result), details=list(map(MergeDetailV1.of, result.details)))
