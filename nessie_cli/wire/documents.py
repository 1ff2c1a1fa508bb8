"""The JSON documents that `encode` and `facts` write, as types: the one source of the schemas in `docs/json/`.

Nothing loads this at run time. `python -m manual` makes the schemas; tests hold every golden answer of the command line against them, with no
attribute left over. Attributes are added, never renamed or removed.
"""
# ruff: noqa: N815 (attributes of JSON)

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType, TypedDict

from nessie_cli.model import CONTENT_TYPES

Hash = TypeAliasType("Hash", Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="The hash of a commit, in full.")])
Digest = TypeAliasType("Digest", Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="The hash of an object that is no commit.")])
Instant = TypeAliasType(
    "Instant",
    Annotated[
        str,
        Field(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?Z$",
            description="An ISO instant in UTC, with no fraction, three or six digits of it.",
        ),
    ],
)
ContentId = TypeAliasType("ContentId", Annotated[str, Field(description="What a content keeps for life, through renames and merges; mostly a UUID.")])
Count = TypeAliasType("Count", Annotated[int, Field(ge=0)])
ForeignType = Annotated[str, WithJsonSchema({"type": "string", "not": {"enum": sorted(CONTENT_TYPES)}})]


class Key(TypedDict):
    """A content key."""

    elements: list[str]


# -- contents ---------------------------------------------------------------------------------------------------------------------------


class IcebergTable(TypedDict):
    """An Iceberg table at one snapshot."""

    type: Literal["ICEBERG_TABLE"]
    id: ContentId | None
    metadataLocation: str
    snapshotId: int
    schemaId: int
    specId: int
    sortOrderId: int


class IcebergView(TypedDict):
    """An Iceberg view at one version."""

    type: Literal["ICEBERG_VIEW"]
    id: ContentId | None
    metadataLocation: str
    versionId: int
    schemaId: int
    sqlText: NotRequired[str]
    dialect: NotRequired[str]


class DeltaLakeTable(TypedDict):
    """A Delta Lake table."""

    type: Literal["DELTA_LAKE_TABLE"]
    id: ContentId | None
    metadataLocationHistory: list[str]
    checkpointLocationHistory: list[str]
    lastCheckpoint: str | None


class Namespace(TypedDict):
    """A namespace; `properties` is left out when there are none."""

    type: Literal["NAMESPACE"]
    id: ContentId | None
    elements: list[str]
    properties: NotRequired[dict[str, str]]


class Udf(TypedDict):
    """A user-defined function."""

    type: Literal["UDF"]
    id: ContentId | None
    metadataLocation: NotRequired[str]
    versionId: NotRequired[str]
    signatureId: NotRequired[str]
    sqlText: NotRequired[str]
    dialect: NotRequired[str]


class ForeignContent(TypedDict):
    """A content of a type that this version does not know, with the attributes that it came with."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    type: ForeignType
    id: ContentId | None


Content = TypeAliasType("Content", IcebergTable | IcebergView | DeltaLakeTable | Namespace | Udf | ForeignContent)


# -- commits and references -----------------------------------------------------------------------------------------------------------


class CommitMeta(TypedDict):
    """What is said about a commit. `parentCommitHashes` has the merged commit second; `allProperties` is left out when there are none."""

    hash: Hash | None
    committer: str | None
    authors: list[str]
    allSignedOffBy: list[str]
    message: str
    commitTime: Instant | None
    authorTime: Instant | None
    allProperties: NotRequired[dict[str, list[str]]]
    parentCommitHashes: NotRequired[list[Hash]]


class ReferenceMetadata(TypedDict):
    """How a reference stands to the default branch, and its last commit; null where that has no meaning."""

    numCommitsAhead: Count | None
    numCommitsBehind: Count | None
    commitMetaOfHEAD: CommitMeta | None
    commonAncestorHash: Hash | None
    numTotalCommits: Count | None


class NamedReference(TypedDict):
    """A branch or tag."""

    type: Literal["BRANCH", "TAG"]
    name: str
    hash: Hash
    metadata: NotRequired[ReferenceMetadata]


class DetachedReference(TypedDict):
    """A commit that was named by no reference."""

    type: Literal["DETACHED"]
    hash: Hash


Reference = TypeAliasType("Reference", NamedReference | DetachedReference)


class LoggedPut(TypedDict):
    """A Put of a commit."""

    type: Literal["PUT"]
    key: Key
    content: Content
    documentation: None


class LoggedDelete(TypedDict):
    """A Delete of a commit."""

    type: Literal["DELETE"]
    key: Key


class LogEntry(TypedDict):
    """A commit; `operations` is null where there are none or they were not asked for, `height` counts the commits of its history."""

    commitMeta: CommitMeta
    parentCommitHash: Hash
    operations: list[LoggedPut | LoggedDelete] | None
    height: Count | None


class Entry(TypedDict):
    """A key of a state; the attribute of the key is `name`. The cache key is the same as long as the content is."""

    type: str
    name: Key
    contentId: ContentId
    content: Content | None
    valueHash: Digest | None
    cacheKey: str | None


# The functional form: `from` is no name that a class could have.
_Sides = TypedDict("_Sides", {"key": Key, "from": Content | None, "to": Content | None})


_FactSides = TypedDict("_FactSides", {"what": str, "name": str | None, "from": str | None, "to": str | None})


class MetadataFact(_FactSides):
    """A thing that differs between two metadata files: what it is, its name where there are several, its text on each side."""


class DiffEntry(_Sides):
    """A key whose content differs; the two entries of a rename name each other's key.

    `metadata` is what the metadata files say (`--deep`), `metadataProblems` why one could not be read.
    """

    renamedTo: NotRequired[Key]
    renamedFrom: NotRequired[Key]
    metadata: NotRequired[list[MetadataFact]]
    metadataProblems: NotRequired[list[str]]


class ReflogEntry(TypedDict):
    """A move of a reference; `before` is null for a creation, `after` for a deletion."""

    number: Count
    reference: str
    type: Literal["BRANCH", "TAG"]
    before: Hash | None
    after: Hash | None
    time: Instant
    who: str
    operation: str
    message: str
    requestId: str


class Problem(TypedDict):
    """Something wrong that `nessie fsck` found; `where` is an object's id or the name of a reference."""

    kind: str
    where: str
    message: str


# -- conflicts and errors -------------------------------------------------------------------------------------------------------------

_RenameSides = TypedDict("_RenameSides", {"from": Key, "to": Key, "by": CommitMeta | None})


class Rename(_RenameSides):
    """One side of a merge moved the content to another key."""


ConflictKind = TypeAliasType(
    "ConflictKind",
    Literal[
        "KEY_EXISTS",
        "KEY_DOES_NOT_EXIST",
        "PAYLOAD_DIFFERS",
        "CONTENT_ID_DIFFERS",
        "VALUE_DIFFERS",
        "NAMESPACE_ABSENT",
        "NOT_A_NAMESPACE",
        "NAMESPACE_NOT_EMPTY",
        "UNEXPECTED_HASH",
        "KEY_CONFLICT",
        "UNKNOWN",
    ],
)


class BareConflict(TypedDict):
    """A conflict as the REST API tells it."""

    conflictType: ConflictKind
    key: Key | None
    message: str


class Conflict(BareConflict):
    """A conflict with what was expected, what is there, what was proposed, who made it so, and command lines that resolve it."""

    expected: Content | None
    actual: Content | None
    proposed: Content | None
    changedBy: CommitMeta | None
    resolutions: list[str]
    sourceRename: NotRequired[Rename]
    targetRename: NotRequired[Rename]


class BareMergeDetail(TypedDict):
    """A key of a merge, as the REST API tells it."""

    key: Key
    mergeBehavior: Literal["NORMAL", "FORCE", "DROP"]
    conflict: NotRequired[BareConflict]


class MergeDetail(TypedDict):
    """A key of a merge with the contents of both sides."""

    key: Key
    mergeBehavior: Literal["NORMAL", "FORCE", "DROP"]
    conflict: NotRequired[Conflict]
    source: Content | None
    target: Content | None


class _MergeOutcome(TypedDict):
    wasApplied: bool
    wasSuccessful: bool
    resultantTargetHash: Hash | None
    commonAncestor: Hash | None
    targetBranch: str
    effectiveTargetHash: Hash | None
    expectedHash: Hash | None


class BareMerge(_MergeOutcome):
    """What a merge would have done, as the REST API tells it."""

    details: list[BareMergeDetail]


class Merge(_MergeOutcome):
    """What a merge or transplant did."""

    details: list[MergeDetail]


class ConflictDetails(TypedDict):
    """All conflicts; `hash` is where the reference stands, `expectedHash` where the caller started."""

    type: Literal["REFERENCE_CONFLICTS"]
    conflicts: list[Conflict]
    reference: str | None
    hash: Hash | None
    expectedHash: Hash | None
    mergeResult: NotRequired[BareMerge]


class KeyDetails(TypedDict):
    """The key that has no content."""

    type: Literal["CONTENT_KEY"]
    contentKey: Key


class NameDetails(TypedDict):
    """The name that does not exist, or exists already."""

    type: Literal["NAME"]
    name: str


class Candidate(TypedDict):
    """A commit that a shortened hash may mean."""

    hash: Hash
    message: str


class CandidateDetails(TypedDict):
    """The commits that share a shortened hash; at most ten."""

    type: Literal["HASH_CANDIDATES"]
    candidates: list[Candidate]


class RequestDetails(TypedDict):
    """The request whose outcome is not known."""

    type: Literal["REQUEST"]
    requestId: str


class ObjectDetails(TypedDict):
    """The object that is damaged or missing."""

    type: Literal["OBJECT"]
    objectId: str


class Error(TypedDict):
    """What went wrong. `errorCode` is for programs, `message` the line that stderr has as well; `errorDetails` depends on the code."""

    status: int
    reason: str
    message: str
    errorCode: str
    errorDetails: NotRequired[ConflictDetails | KeyDetails | NameDetails | CandidateDetails | RequestDetails | ObjectDetails]


class ErrorAnswer(TypedDict):
    """The answer of a command that failed."""

    error: Error


# -- answers that several commands have -------------------------------------------------------------------------------------------------


class Listing(TypedDict):
    """What every listing has: `error` only where it broke off, behind the records that were read until then."""

    error: NotRequired[Error]


class Page(Listing):
    """A listing in the form of a page of the REST API; `token` is always null here. `hasMore` tells whether a limit cut it short."""

    hasMore: bool
    token: str | None


class SingleReference(TypedDict):
    """One reference."""

    reference: Reference


class AddedContent(TypedDict):
    """A content that a commit created."""

    key: Key
    contentId: ContentId


class Committed(TypedDict):
    """What a commit did; `addedContents` is null where it created nothing, `wasRepeated` says that an earlier try had done it already."""

    targetBranch: Reference
    addedContents: list[AddedContent] | None
    wasApplied: bool
    wasRepeated: bool
