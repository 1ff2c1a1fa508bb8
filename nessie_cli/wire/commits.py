"""The structs of commits in answers, each with `of` for a value of the model.

`answers` converts them back. An attribute with a plain default is left out if it has that value.
One with a factory is always written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Self

from msgspec import Struct, field

from nessie_cli import model
from nessie_cli.wire.contents import AnyContent, Key, content_struct
from nessie_cli.wire.scalars import Count, Hash, Instant, Null, empty_list, instant


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

    @classmethod
    def of(cls, meta: model.CommitMeta) -> Self:
        """Returns the struct of commit metadata."""
        return cls(
            hash=meta.hash,
            committer=meta.committer,
            authors=list(meta.authors),
            all_signed_off_by=list(meta.signed_off_by),
            message=meta.message,
            commit_time=instant(meta.commit_time),
            author_time=instant(meta.author_time),
            all_properties={name: list(values) for name, values in meta.properties.items()},
            parent_commit_hashes=list(meta.parents),
        )


def optional_meta(meta: model.CommitMeta | None) -> CommitMeta | None:
    """Returns the struct of commit metadata, or None."""
    return None if meta is None else CommitMeta.of(meta)


class LoggedPut(Struct, tag_field="type", tag="PUT"):
    """A Put of a commit."""

    key: Key
    content: AnyContent
    documentation: Null = None


class LoggedDelete(Struct, tag_field="type", tag="DELETE"):
    """A Delete of a commit."""

    key: Key


def _logged(operation: model.Operation) -> LoggedPut | LoggedDelete:
    key = Key.of(operation.key)
    if isinstance(operation, model.Put):
        return LoggedPut(key, content_struct(operation.content))
    return LoggedDelete(key)


class BareLogEntry(Struct, rename="camel"):
    """A commit; `operations` is null if there are none or they were not requested."""

    commit_meta: CommitMeta
    parent_commit_hash: Hash
    operations: list[LoggedPut | LoggedDelete] | None = field(default_factory=NoneType)

    @classmethod
    def of(cls, entry: model.LogEntry) -> Self:
        """Returns the struct of a commit of a log."""
        return cls(
            CommitMeta.of(entry.meta),
            entry.parent,
            [_logged(operation) for operation in entry.operations or ()] or None,
        )


class LogEntry(BareLogEntry):
    """A commit; `height` counts the commits of its history.

    `operations` is null if there are none or they were not requested.
    """

    height: Count | None = field(default_factory=NoneType)

    @classmethod
    def of(cls, entry: model.LogEntry) -> Self:
        """Returns the struct of a commit of a log, with its height."""
        struct = super().of(entry)
        struct.height = entry.height
        return struct


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

    @classmethod
    def of(cls, meta: model.CommitMeta) -> Self:
        """Returns the struct of commit metadata."""
        return cls(
            properties={name: values[0] for name, values in meta.properties.items() if values},
            hash=meta.hash,
            committer=meta.committer,
            message=meta.message,
            commit_time=instant(meta.commit_time),
            author_time=instant(meta.author_time),
            author=meta.author,
            signed_off_by=meta.signed_off_by[0] if meta.signed_off_by else None,
        )


class PutV1(Struct, rename="camel", tag_field="type", tag="PUT"):
    """A Put of a commit in REST v1."""

    key: Key
    content: AnyContent
    expected_content: Null = None


def _logged_v1(operation: model.Operation) -> PutV1 | LoggedDelete:
    key = Key.of(operation.key)
    if isinstance(operation, model.Put):
        return PutV1(key, content_struct(operation.content))
    return LoggedDelete(key)


class LogEntryV1(Struct, rename="camel"):
    """A commit in REST v1."""

    commit_meta: CommitMetaV1
    parent_commit_hash: Hash
    operations: list[PutV1 | LoggedDelete] | None

    @classmethod
    def of(cls, entry: model.LogEntry) -> Self:
        """Returns the struct of a commit of a log."""
        return cls(
            CommitMetaV1.of(entry.meta),
            entry.parent,
            [_logged_v1(operation) for operation in entry.operations or ()] or None,
        )
