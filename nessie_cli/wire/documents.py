"""The JSON documents that `encode` and `facts` write, as types: the one source of the schemas in `docs/json/`.

Nothing loads this at run time. `python -m manual` makes the schemas; tests hold every golden answer of the command line against them, with no
attribute left over. Attributes are added, never renamed or removed.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

from nessie_cli.wire.document_parts import CommitMeta, Content, ContentId, Hash, Key, Reference

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
