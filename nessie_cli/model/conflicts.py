"""Conflicts: the reasons why a key cannot be committed or merged, as data for diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from nessie_cli.model.commits import CommitMeta
from nessie_cli.model.contents import Content
from nessie_cli.model.keys import ContentKey


class ConflictType(StrEnum):
    """The conflict types of the REST API."""

    KEY_EXISTS = "KEY_EXISTS"
    KEY_DOES_NOT_EXIST = "KEY_DOES_NOT_EXIST"
    PAYLOAD_DIFFERS = "PAYLOAD_DIFFERS"
    CONTENT_ID_DIFFERS = "CONTENT_ID_DIFFERS"
    VALUE_DIFFERS = "VALUE_DIFFERS"
    NAMESPACE_ABSENT = "NAMESPACE_ABSENT"
    NOT_A_NAMESPACE = "NOT_A_NAMESPACE"
    NAMESPACE_NOT_EMPTY = "NAMESPACE_NOT_EMPTY"
    UNEXPECTED_HASH = "UNEXPECTED_HASH"
    KEY_CONFLICT = "KEY_CONFLICT"
    UNKNOWN = "UNKNOWN"


OF_NAMESPACES = (
    ConflictType.NAMESPACE_ABSENT,
    ConflictType.NOT_A_NAMESPACE,
    ConflictType.NAMESPACE_NOT_EMPTY,
)
"""The types of conflicts that no side of a merge resolves."""

MOST_REPORTED = 1_000
"""The most conflicts of a refused commit that are reported, and the most in any message."""


class ContentPlace(Struct, frozen=True):
    """A commit (hash) and a key with a content."""

    hash: str
    key: ContentKey


class Rename(Struct, frozen=True):
    """A rename on one side of a merge: the old key, the new key, and the commit."""

    old: ContentKey
    new: ContentKey
    by: CommitMeta | None = None


class MergeBehavior(StrEnum):
    """How a key is merged or transplanted.

    NORMAL merges it or reports a conflict, FORCE takes the source's content, DROP keeps the
    target's (in a transplant, only if the key conflicts).
    """

    NORMAL = "NORMAL"
    FORCE = "FORCE"
    DROP = "DROP"


class MergeOption(Struct, frozen=True):
    """A possible decision about a conflict: FORCE takes theirs, DROP keeps ours.

    It gives the content the key and value of that side. Beside that value, it deletes the contents
    at the keys `deletes` of the target, renames those at the old keys of `renames`, and leaves out
    new contents at the keys `leaves_out` of the source. NORMAL stands for all decisions that were
    given, and then that value counts as well.
    """

    behavior: MergeBehavior
    deletes: tuple[ContentKey, ...] = ()
    renames: tuple[tuple[ContentKey, ContentKey], ...] = ()
    leaves_out: tuple[ContentKey, ...] = ()


class CollidingFile(Struct, frozen=True):
    """A file of a table that is part of a collision: its partition as text, and its rows."""

    path: str
    partition: str
    rows: int


class RowConflictKind(StrEnum):
    """What ours and theirs did with one row."""

    UPDATE_UPDATE = "UPDATE_UPDATE"
    INSERT_INSERT = "INSERT_INSERT"
    DELETE_UPDATE = "DELETE_UPDATE"
    UPDATE_DELETE = "UPDATE_DELETE"


class RowConflict(Struct, frozen=True):
    """A cell, or a whole row, that both sides changed differently.

    `key` are the values of the key by the names of its columns. `column` is None if one side
    deleted the row, or if rows are merged as a whole: `base`, `ours` and `theirs` are then rows,
    and None is a row that is not there. All values are JSON.
    """

    kind: RowConflictKind
    key: Mapping[str, Any]
    column: str | None
    base: Any
    ours: Any
    theirs: Any


class Collision(Struct, frozen=True):
    """A reason why the two sides of a table do not combine.

    `files` are those that it is about, and `rows` the first of the rows.
    """

    reason: str
    files: tuple[CollidingFile, ...] = ()
    rows: tuple[RowConflict, ...] = ()


class MergedBase(Struct, frozen=True):
    """Several merge bases that conflict about a content: the merge of two of their states."""

    base: Content | MergedBase | None
    ours: Content | MergedBase | None
    theirs: Content | MergedBase | None


class Conflict(Struct, frozen=True):
    """A key in conflict.

    `expected` is the content that the caller started from, `actual` the content at HEAD, and
    `proposed` the content that the operation would store; None means "no content". `changed_by` is
    the newest commit of the branch that changed the key. `source_rename` and `target_rename` are
    set if a side of a merge renamed the content.

    In a merge per content, `key` is its key on ours, else on theirs. `base_key` and `theirs_key`
    are its keys there, None if it is absent. `value_key` is the key on ours of a content that
    claims `key` with the value it has on ours, or that takes `key` from a namespace with contents.
    `is_ambiguous` is whether the key names another content in conflict as well, so that a decision
    must use `content_id`. `commit` is the transplanted commit. `other_key` is set if the merge
    would give a content a second key: it is the key that has the content already. `same_file_key`
    is set if the merge would bring a content of theirs together with another one of ours that has
    the same metadata file: the key of that one. `options` are the decisions that are possible
    together with those given before. `blocking_namespace` is set if theirs cannot be taken, because
    that would remove this namespace, which has contents below it. `collisions` are the reasons why
    the files of an Iceberg table do not combine, if that was tried.

    In a merge per content, `actual_at` and `proposed_at` are places of the contents `actual` and
    `proposed`, None for a content that is absent or that the caller supplied. `changed_key` is the
    key at HEAD whose newest change is `changed_by`: earlier commits of a transplant may have
    renamed the content. If a merge has several merge bases, `merged_base` is the content there, or
    the states of it that conflict; a server does not send it. The command line sets
    `theirs_changed_by`, the newest commit of the source of a merge that changed a table which does
    not combine.
    """

    type: ConflictType
    key: ContentKey | None
    message: str
    expected: Content | None = None
    actual: Content | None = None
    proposed: Content | None = None
    changed_by: CommitMeta | None = None
    source_rename: Rename | None = None
    target_rename: Rename | None = None
    content_id: str | None = None
    base_key: ContentKey | None = None
    theirs_key: ContentKey | None = None
    value_key: ContentKey | None = None
    is_ambiguous: bool = False
    commit: str | None = None
    other_key: ContentKey | None = None
    same_file_key: ContentKey | None = None
    blocking_namespace: ContentKey | None = None
    options: tuple[MergeOption, ...] = ()
    collisions: tuple[Collision, ...] = ()
    actual_at: ContentPlace | None = None
    proposed_at: ContentPlace | None = None
    changed_key: ContentKey | None = None
    merged_base: Content | MergedBase | None = None
    theirs_changed_by: CommitMeta | None = None


_TEXT = {
    ConflictType.KEY_EXISTS: "key '{}' already exists",
    ConflictType.KEY_DOES_NOT_EXIST: "key '{}' does not exist",
    ConflictType.PAYLOAD_DIFFERS: "payload of existing and expected content"
    " for key '{}' are different",
    ConflictType.CONTENT_ID_DIFFERS: "content IDs of existing and expected content"
    " for key '{}' are different",
    ConflictType.VALUE_DIFFERS: "values of existing and expected content"
    " for key '{}' are different",
    ConflictType.NAMESPACE_ABSENT: "namespace '{}' must exist",
    ConflictType.NOT_A_NAMESPACE: "expecting the key '{}' to be a namespace, but is not a"
    " namespace (using a content object that is not a namespace as a namespace is forbidden)",
    ConflictType.NAMESPACE_NOT_EMPTY: "namespace '{}' is not empty",
    ConflictType.KEY_CONFLICT: "the content of key '{}' has different keys",
}


def conflict_text(type_: ConflictType, key: ContentKey) -> str:
    """Returns the message of the REST API for a conflict."""
    return _TEXT[type_].format(key.plain)


def second_key_text(other: ContentKey) -> str:
    """Returns the end of the message of a conflict: the key that has the content id already."""
    return f"; its content id is that of key '{other.plain}'"


def same_file_text(other: ContentKey) -> str:
    """Returns the end of the message of a conflict: the key of ours with the metadata file."""
    return f"; its metadata file is that of key '{other.plain}'"


def listed(texts: Sequence[str], more: int = 0) -> str:
    """Returns the first texts with commas between them, and the number of the others.

    `more` is the number of texts that are missing already.
    """
    more += max(0, len(texts) - MOST_REPORTED)
    return ", ".join(texts[:MOST_REPORTED]) + (f", and {more:,} more" if more else "")


def commit_message(conflicts: Sequence[Conflict], more: int = 0) -> str:
    """Returns the message of the REST API for the conflicts of a commit, and `more` others."""
    if len(conflicts) == 1 and not more:
        text = conflicts[0].message
        return text[:1].upper() + text[1:] + "."
    return (
        "There are multiple conflicts that prevent committing the provided operations: "
        + listed([c.message for c in conflicts], more)
        + "."
    )


def merge_message(conflicts: Sequence[Conflict]) -> str:
    """Returns the message of the REST API for the conflicts of a merge or transplant."""
    if all(conflict.type in OF_NAMESPACES for conflict in conflicts):
        return commit_message(conflicts)
    keys = sorted(c.key for c in conflicts if c.key)
    return "The following keys have been changed in conflict: " + listed(
        [f"'{key.plain}'" for key in keys]
    )
