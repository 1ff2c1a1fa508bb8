"""The results of an audit: findings, and the result for one content."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from nessie_cli.model import ContentKey


class FindingKind(StrEnum):
    """The kind of a finding."""

    METADATA_MISSING = "METADATA_MISSING"
    METADATA_UNREADABLE = "METADATA_UNREADABLE"
    WRONG_TYPE = "WRONG_TYPE"
    ID_MISSING = "ID_MISSING"
    ID_DIFFERS = "ID_DIFFERS"
    MANIFEST_LIST_MISSING = "MANIFEST_LIST_MISSING"
    MANIFEST_LIST_UNREADABLE = "MANIFEST_LIST_UNREADABLE"
    MANIFEST_MISSING = "MANIFEST_MISSING"
    MANIFEST_DAMAGED = "MANIFEST_DAMAGED"
    FILE_MISSING = "FILE_MISSING"
    UUID_SHARED = "UUID_SHARED"
    UNREACHABLE = "UNREACHABLE"


class AuditFinding(Struct, frozen=True):
    """A problem with a content. `where` is the file, `message` one line."""

    kind: FindingKind
    key: ContentKey
    content_id: str
    where: str
    message: str


class ContentAudit(Struct, frozen=True):
    """The result for one content.

    `files` is the number of checked files. `uuid` is the UUID of the table or view, None if it is
    unknown.
    """

    key: ContentKey
    content_id: str
    findings: tuple[AuditFinding, ...] = ()
    uuid: str | None = None
    files: int = 0


Holder = tuple[ContentKey, str]
"""A key and its content id."""


class AuditCounts(Struct):
    """How much an audit has checked: contents, contents with files, and files."""

    contents: int = 0
    with_files: int = 0
    files: int = 0

    def add(self, audited: ContentAudit) -> None:
        """Adds one content."""
        self.contents += 1
        self.with_files += audited.files > 0
        self.files += audited.files

    def add_all(self, other: AuditCounts) -> None:
        """Adds the counts of another object."""
        self.contents += other.contents
        self.with_files += other.with_files
        self.files += other.files
