"""The structs of commits in answers. `encode` and `answers` convert them.

An attribute with a plain default is left out if it has that value. One with a factory is always
written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from nessie_cli.wire.contents import Key, empty_list

Hash = Annotated[str, Meta(title="Hash")]
Instant = Annotated[str, Meta(title="Instant")]
AnyContent = Annotated[Any, Meta(title="Content")]
"""A content of any type. The titles name definitions (`schemas`)."""
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
