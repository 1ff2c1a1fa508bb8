"""The structs of answers that only a server sends: pages and configuration."""
# ruff: noqa: D101 (the names are the specification's)

from __future__ import annotations

from typing import Literal, Self

from msgspec import UNSET, Struct, UnsetType

from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, Reference, RepositoryConfig
from nessie_cli.wire.bodies import GarbageCollectorConfig
from nessie_cli.wire.commits import BareLogEntry, CommitMeta, LogEntry, LogEntryV1
from nessie_cli.wire.contents import AnyContent, Key, content_struct
from nessie_cli.wire.entries import BareDiffEntry, BareEntry, EntryV1
from nessie_cli.wire.errors import BareConflictDetails, NessieError
from nessie_cli.wire.merges import MergeResponseV1
from nessie_cli.wire.references import (
    AnyReference,
    AnyReferenceV1,
    ReflogEntry,
    reference_struct,
)
from nessie_cli.wire.scalars import Hash, Instant, instant

SPEC_VERSION = "2.2.0"
"""The version of the Nessie specification that a server announces."""
REPOSITORY_CREATED = "nessie.repository-created"
"""The property of an Iceberg catalog with the creation of its repository, by which a client
recognizes the repository."""


class _Answer(Struct, rename="camel"):
    """The base of all answers."""


# -- version 2 -------------------------------------------------------------------------------------


class BarePage(_Answer):
    """A page of a listing; `token` is null on the last one."""

    has_more: bool
    token: str | None


class ReferencesResponse(BarePage):
    references: list[AnyReference]


class LogResponse(BarePage):
    log_entries: list[BareLogEntry]


class EntriesResponse(BarePage):
    entries: list[BareEntry]
    effective_reference: AnyReference


class DiffResponse(BarePage):
    diffs: list[BareDiffEntry]
    effective_from_reference: AnyReference
    effective_to_reference: AnyReference


class SingleReference(_Answer):
    """One reference."""

    reference: AnyReference

    @classmethod
    def of(cls, reference: Reference) -> Self:
        """Returns the answer of the requests that get, create, assign or delete a reference."""
        return cls(reference_struct(reference))


class ContentResponse(_Answer):
    """One content, and the reference it was read from."""

    content: AnyContent
    effective_reference: AnyReference


class ContentOfKey(_Answer):
    key: Key
    content: AnyContent

    @classmethod
    def of(cls, key: ContentKey, content: Content) -> Self:
        """Returns a content with its key."""
        return cls(Key.of(key), content_struct(content))


class GetMultipleContentsResponse(_Answer):
    contents: list[ContentOfKey]
    effective_reference: AnyReference


class ReferenceState(_Answer):
    commit_hash: Hash
    commit_consistency: str
    meta: CommitMeta | None


class ReferenceHistoryResponse(_Answer):
    reference: AnyReference
    current: ReferenceState
    previous: list[ReferenceState]
    commit_log_consistency: str


class NessieConfiguration(_Answer):
    default_branch: str
    min_supported_api_version: Literal[1]
    max_supported_api_version: Literal[2]
    actual_api_version: Literal[2]
    spec_version: str
    no_ancestor_hash: Hash
    repository_creation_timestamp: Instant | UnsetType = UNSET
    oldest_possible_commit_timestamp: Instant | UnsetType = UNSET

    @classmethod
    def of(cls, config: RepositoryConfig) -> Self:
        """Returns the configuration of a server for a repository."""
        created = UNSET if config.created is None else instant(config.created)
        return cls(config.default_branch, 1, 2, 2, SPEC_VERSION, NO_ANCESTOR, created, created)


class RepositoryConfigResponse(_Answer):
    configs: list[GarbageCollectorConfig] | UnsetType = UNSET


class UpdateRepositoryConfigResponse(_Answer):
    previous: GarbageCollectorConfig | None


# -- extensions, which the OpenAPI document does not describe -------------------------------------


class LogResponseOfOurs(BarePage):
    log_entries: list[LogEntry]


class ReflogResponse(BarePage):
    reflog: list[ReflogEntry]


# -- version 1 -------------------------------------------------------------------------------------


class ReferencesResponseV1(BarePage):
    references: list[AnyReferenceV1]


class LogResponseV1(BarePage):
    log_entries: list[LogEntryV1]


class EntriesResponseV1(BarePage):
    entries: list[EntryV1]


class DiffResponseV1(BarePage):
    diffs: list[BareDiffEntry]


class GetMultipleContentsResponseV1(_Answer):
    contents: list[ContentOfKey]


class NamespacesResponse(_Answer):
    namespaces: list[AnyContent]


class NessieConfigurationV1(_Answer):
    """The configuration of a server; old clients accept nothing more."""

    default_branch: str
    max_supported_api_version: Literal[2]


ANSWERS: tuple[type[Struct], ...] = (
    BarePage,
    ReferencesResponse,
    LogResponse,
    EntriesResponse,
    DiffResponse,
    SingleReference,
    ContentResponse,
    GetMultipleContentsResponse,
    ReferenceHistoryResponse,
    NessieConfiguration,
    RepositoryConfigResponse,
    UpdateRepositoryConfigResponse,
    BareConflictDetails,
    NessieError,
    ReferencesResponseV1,
    LogResponseV1,
    EntriesResponseV1,
    DiffResponseV1,
    GetMultipleContentsResponseV1,
    NamespacesResponse,
    NessieConfigurationV1,
    MergeResponseV1,
)
"""The bodies of all answers, beside those of commits and merges (`schemas`)."""
