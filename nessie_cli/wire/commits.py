"""The structs of commits in answers. `encode` and `answers` convert them.

An attribute with a plain default is left out if it has that value. One with a factory is always
written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from nessie_cli.wire.contents import ContentId, Key, empty_list

Digest = Annotated[str, Meta(title="Digest")]
Hash = Annotated[str, Meta(title="Hash")]
Count = Annotated[int, Meta(title="Count")]
Instant = Annotated[str, Meta(title="Instant")]
AnyContent = Annotated[Any, Meta(title="Content")]
AnyReference = Annotated[Any, Meta(title="Reference")]
"""A struct of another module. The titles name definitions (`schemas`)."""
Null = Annotated[Any, Meta(extra_json_schema={"type": "null"})]
"""An attribute that is null in our answers, and is not read from those of other servers."""


class CommitMeta(Struct, rename="camel", omit_defaults=True):
    """The metadata of a commit. `parentCommitHashes` has the merged commit second."""

    hash: Hash | None = field(default_factory=NoneType)
    committer: str | None = field(default_factory=NoneType)
    authors: list[str] = field(default_factory=empty_list)
    all_signed_off_by: list[str] = field(default_factory=empty_list)
    message: str = field(default_factory=str)
    commit_time: Instant | None = field(default_factory=NoneType)
    author_time: Instant | None = field(default_factory=NoneType)
    all_properties: dict[str, list[str]] = {}
    parent_commit_hashes: list[Hash] = []


class LoggedPut(Struct, tag_field="type", tag="PUT"):
    """A Put of a commit."""

    key: Key
    content: AnyContent
    documentation: Null = None


class LoggedDelete(Struct, tag_field="type", tag="DELETE"):
    """A Delete of a commit."""

    key: Key


class BareLogEntry(Struct, rename="camel"):
    """A commit; `operations` is null if there are none or they were not requested."""

    commit_meta: CommitMeta
    parent_commit_hash: Hash
    operations: list[LoggedPut | LoggedDelete] | None = field(default_factory=NoneType)


class LogEntry(BareLogEntry):
    """A commit; `height` counts the commits of its history.

    `operations` is null if there are none or they were not requested.
    """

    height: Count | None = field(default_factory=NoneType)


class AddedContent(Struct, rename="camel"):
    """A content that a commit created."""

    key: Key
    content_id: ContentId


class BareCommit(Struct, rename="camel"):
    """What a commit did; `addedContents` is null if it created nothing."""

    target_branch: AnyReference
    added_contents: list[AddedContent] | None


class CommitOutcome(BareCommit):
    """What a commit did, or would do in a dry run (`wasApplied` is false)."""

    was_applied: bool


# -- version 1 -------------------------------------------------------------------------------------


class CommitMetaV1(Struct, rename="camel"):
    """The metadata of a commit: the first author, signature and value of each property."""

    properties: dict[str, str]
    hash: Hash | None
    committer: str | None
    message: str
    commit_time: Instant | None
    author_time: Instant | None
    author: str | None
    signed_off_by: str | None


class PutV1(Struct, rename="camel", tag_field="type", tag="PUT"):
    """A Put of a commit in REST v1."""

    key: Key
    content: AnyContent
    expected_content: Null = None


class LogEntryV1(Struct, rename="camel"):
    """A commit in REST v1."""

    commit_meta: CommitMetaV1
    parent_commit_hash: Hash
    operations: list[PutV1 | LoggedDelete] | None
