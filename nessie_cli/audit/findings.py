"""What an audit finds, and what it says of one content."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from nessie_cli.model import ContentKey


class FindingKind(StrEnum):
    """What can be wrong with a content."""

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


class Finding(Struct, frozen=True):
    """One thing that is wrong with a content; `where` is the file that it is about, `message` why, in one line."""

    kind: FindingKind
    key: ContentKey
    content_id: str
    where: str
    message: str


class Audited(Struct, frozen=True):
    """What one content's files say.

    `files` is how many were looked at, 0 for a content that has none. `uuid` is what the table or view calls itself, None where that is not known.
    """

    key: ContentKey
    content_id: str
    findings: tuple[Finding, ...] = ()
    uuid: str | None = None
    files: int = 0


Holder = tuple[ContentKey, str]
"""A key and its content id."""


class Counts(Struct):
    """How much an audit has looked at: contents, those of them that have files, and files."""

    contents: int = 0
    with_files: int = 0
    files: int = 0

    def add(self, audited: Audited) -> None:
        """Count one content."""
        self.contents += 1
        self.with_files += audited.files > 0
        self.files += audited.files

    def add_all(self, other: Counts) -> None:
        """Count what another count has."""
        self.contents += other.contents
        self.with_files += other.with_files
        self.files += other.files
