"""Conflicts: why a key cannot be committed or merged, with everything that a diagnosis needs, as data."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from nessie_cli.model.commits import CommitMeta
from nessie_cli.model.contents import Content
from nessie_cli.model.keys import ContentKey


class ConflictType(StrEnum):
    """The REST API's vocabulary."""

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


class Rename(Struct, frozen=True):
    """One side of a merge moved a content to another key: from where, to where, and the commit that did it."""

    old: ContentKey
    new: ContentKey
    by: CommitMeta | None = None


class Conflict(Struct, frozen=True):
    """One key in conflict.

    `expected` is the state the caller started from, `actual` the state at HEAD, `proposed` what the operation wanted; None is "no content".
    `changed_by` is the commit that made `actual` differ. `source_rename` and `target_rename` are set where one side of a merge renamed the content.
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
