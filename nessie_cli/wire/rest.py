"""Shapes that only a server sends: pages, configuration, and all that REST v1 does differently."""
# ruff: noqa: N815 (attributes of JSON)

from __future__ import annotations

from operator import itemgetter
from typing import Literal

from nessie_cli.model import NO_ANCESTOR
from nessie_cli.wire.shape import NotRequired, OneOf, Shape, of
from nessie_cli.wire.shapes import (
    BareConflict,
    BareDiffEntry,
    BareEntry,
    BareLogEntry,
    CleanMergeDetail,
    CommitMeta,
    Content,
    DetachedReference,
    ErrorLine,
    Hash,
    Instant,
    Int32,
    Key,
    KeyDetails,
    LoggedDelete,
    MergeOutcome,
    NamedReference,
    Reference,
    ReferenceMetadata,
)

SPEC_VERSION = "2.2.0"
"""The version of the Nessie specification that a server announces."""

# -- version 2 -------------------------------------------------------------------------------------


class BarePage(Shape):
    """A page of a listing; `token` is null on the last one."""

    hasMore: bool
    token: str | None


class ReferencesResponse(BarePage):
    """A page of references."""

    references: list[Reference]


class LogResponse(BarePage):
    """A page of a log."""

    logEntries: list[BareLogEntry]


class EntriesResponse(BarePage):
    """A page of the keys of a state."""

    entries: list[BareEntry]
    effectiveReference: Reference


class DiffResponse(BarePage):
    """A page of the keys whose contents differ."""

    diffs: list[BareDiffEntry]
    effectiveFromReference: Reference
    effectiveToReference: Reference


class ContentOfKey(Shape):
    """A key with its content."""

    key: Key = of(itemgetter(0))
    content: Content = of(itemgetter(1))


class GetMultipleContentsResponse(Shape):
    """Several contents, and the reference they were read from."""

    contents: list[ContentOfKey]
    effectiveReference: Reference


class ReferenceState(Shape):
    """A commit that a reference pointed at, and whether it is consistent."""

    commitHash: Hash
    commitConsistency: str
    meta: CommitMeta | None


class ReferenceHistoryResponse(Shape):
    """The recent commits of a reference."""

    reference: Reference
    current: ReferenceState
    previous: list[ReferenceState]
    commitLogConsistency: str


class NessieConfiguration(Shape):
    """The configuration of a server."""

    defaultBranch: str
    minSupportedApiVersion: Literal[1]
    maxSupportedApiVersion: Literal[2]
    actualApiVersion: Literal[2]
    specVersion: str = of(lambda _: SPEC_VERSION)
    noAncestorHash: Hash = of(lambda _: NO_ANCESTOR)
    repositoryCreationTimestamp: NotRequired[Instant] = of("created")
    oldestPossibleCommitTimestamp: NotRequired[Instant] = of("created")


class CutoffPolicy(Shape):
    """How long the commits of matching references are kept."""

    referenceNamePattern: str
    policy: str


class GarbageCollectorConfig(Shape):
    """How long garbage collection keeps commits."""

    type: Literal["GARBAGE_COLLECTOR"]
    defaultCutoffPolicy: NotRequired[str]
    perRefCutoffPolicies: NotRequired[list[CutoffPolicy]]
    newFilesGracePeriod: NotRequired[str]
    expectedFileCountPerContent: NotRequired[Int32]


class RepositoryConfigResponse(Shape):
    """The configuration objects of a repository."""

    configs: NotRequired[list[GarbageCollectorConfig]]


class UpdateRepositoryConfigResponse(Shape):
    """The configuration object that was replaced."""

    previous: GarbageCollectorConfig | None


class BareConflictDetails(Shape):
    """All conflicts."""

    type: Literal["REFERENCE_CONFLICTS"]
    conflicts: list[BareConflict]


class NessieError(ErrorLine):
    """An error as the REST API reports it."""

    errorDetails: NotRequired[BareConflictDetails | KeyDetails]
    serverStackTrace: None


# -- version 1 -------------------------------------------------------------------------------------


class CommitMetaV1(Shape):
    """The metadata of a commit: the first author, signature and value of each property."""

    properties: dict[str, str] = of(lambda meta: {name: values[0] for name, values in meta.properties.items() if values})
    hash: Hash | None
    committer: str | None
    message: str
    commitTime: Instant | None
    authorTime: Instant | None
    author: str | None
    signedOffBy: str | None = of(lambda meta: meta.signed_off_by[0] if meta.signed_off_by else None)


class PutV1(Shape):
    """A Put of a commit."""

    type: Literal["PUT"]
    key: Key
    content: Content
    expectedContent: None


class LogEntryV1(BareLogEntry):
    """A commit; `operations` is null if there are none or they were not requested."""

    commitMeta: CommitMetaV1 = of("meta")  # type: ignore[assignment]
    operations: list[PutV1 | LoggedDelete] | None  # type: ignore[assignment]


class ReferenceMetadataV1(ReferenceMetadata):
    """How a reference compares to the default branch, and its last commit; null if not applicable."""

    commitMetaOfHEAD: CommitMetaV1 | None = of("head")  # type: ignore[assignment]


class NamedReferenceV1(NamedReference):
    """A branch or tag."""

    metadata: NotRequired[ReferenceMetadataV1]


class ReferenceV1(OneOf):
    """A reference or a detached commit."""

    shapes = (NamedReferenceV1, DetachedReference)


class EntryV1(Shape):
    """A key of a state; the attribute of the key is `name`."""

    type: str
    name: Key = of("key")


class MergeDetailV1(CleanMergeDetail):
    """A key of a merge, with the deprecated attributes that old clients require."""

    conflictType: Literal["NONE", "UNRESOLVABLE"] = of(lambda detail: "UNRESOLVABLE" if detail.conflict else "NONE")
    sourceCommits: list[str] = of(lambda _: ())
    targetCommits: list[str] = of(lambda _: ())


class MergeResponseV1(MergeOutcome):
    """What a merge or transplant did, with the deprecated attributes that old clients require."""

    details: list[MergeDetailV1]
    sourceCommits: list[str] = of(lambda _: ())
    targetCommits: None


class ReferencesResponseV1(BarePage):
    """A page of references."""

    references: list[ReferenceV1]


class LogResponseV1(BarePage):
    """A page of a log."""

    logEntries: list[LogEntryV1]


class EntriesResponseV1(BarePage):
    """A page of the keys of a state."""

    entries: list[EntryV1]


class DiffResponseV1(BarePage):
    """The keys whose contents differ."""

    diffs: list[BareDiffEntry]


class GetMultipleContentsResponseV1(Shape):
    """Several contents."""

    contents: list[ContentOfKey]


class NamespacesResponse(Shape):
    """Several namespaces."""

    namespaces: list[Content]


class NessieConfigurationV1(Shape):
    """The configuration of a server; old clients accept nothing more."""

    defaultBranch: str
    maxSupportedApiVersion: Literal[2]


ANSWERS = [found for found in vars().values() if isinstance(found, type) and issubclass(found, Shape | OneOf) and found.__module__ == __name__]
"""All of these shapes."""
