"""The shapes of request bodies that are not answers as well.

`guards` derives their validation, `schemas` their description in the OpenAPI document.
"""
# ruff: noqa: D101, N815 (the names are the specification's; attributes of JSON)

from typing import Any, Literal, NewType

from nessie_cli.wire import shapes
from nessie_cli.wire.rest import GarbageCollectorConfig
from nessie_cli.wire.shape import SCALARS, Filled, NotRequired, OneOf, Shape
from nessie_cli.wire.shapes import Behavior, Content, Key

ReferenceName = NewType("ReferenceName", str)
HashSpec = NewType("HashSpec", str)
"""A hash with relative parts after it."""
Time = NewType("Time", str)

SCALARS |= {
    ReferenceName: {"pattern": r"^(-|[A-Za-z](?:[A-Za-z0-9./_-]*[A-Za-z0-9_-])?)$"},
    HashSpec: {"pattern": r"^[0-9a-fA-F]{8,64}([~*^][0-9TZ:.-]+)*$"},
    Time: {"format": "date-time"},
}


class CommitMetaRequest(Shape):
    """The metadata of a new commit, by singular or plural names.

    The server sets the last four attributes.
    """

    rejects_unknown = True
    message: str
    author: str | None
    authors: list[str] | None
    signedOffBy: str | None
    allSignedOffBy: list[str] | None
    authorTime: Time | None
    properties: dict[str, str] | None
    allProperties: dict[str, list[str]] | None
    hash: NotRequired[Any]
    committer: NotRequired[Any]
    commitTime: NotRequired[Any]
    parentCommitHashes: NotRequired[Any]


class Put(Shape):
    """A Put. `metadata` and `documentation` are checked and not kept."""

    type: Literal["PUT"]
    key: Key
    content: Content
    expectedContent: Content | None
    metadata: list[dict[str, Any]] | None
    documentation: dict[str, Any] | None


class ForeignContent(Shape):
    """The only attribute that is checked in a content of an unknown type."""

    id: str | None


class Operation(OneOf):
    shapes = (Put, shapes.LoggedDelete, shapes.Unchanged)


class Operations(Shape):
    commitMeta: CommitMetaRequest
    operations: Filled[list[Operation]]


class NamedReference(Shape):
    type: Literal["BRANCH", "TAG"]
    name: ReferenceName
    hash: HashSpec | None


class DetachedReference(Shape):
    type: Literal["DETACHED"]
    hash: HashSpec


class LooseReference(Shape):
    """The attributes of any reference in a request, checked before its type."""

    name: str | None
    hash: str | None


class ReferenceRequest(OneOf):
    shapes = (NamedReference, DetachedReference)


class MergeKeyBehavior(Shape):
    key: Key
    mergeBehavior: Behavior
    expectedTargetContent: Content | None
    resolvedContent: Content | None
    contentId: NotRequired[str | None]
    commit: NotRequired[shapes.Hash | None]


class _MergeOrTransplant(Shape):
    """The common attributes of a merge and a transplant.

    Three flags have two spellings: the one that clients send, and the one of the original's
    examples. `perContent` merges contents instead of keys, an extension.
    """

    fromRefName: ReferenceName
    message: NotRequired[Filled[str]]
    keyMergeModes: list[MergeKeyBehavior] | None
    defaultKeyMergeMode: Behavior | None
    isDryRun: bool | None
    dryRun: bool | None
    isFetchAdditionalInfo: bool | None
    fetchAdditionalInfo: bool | None
    isReturnConflictAsResult: bool | None
    returnConflictAsResult: bool | None
    perContent: NotRequired[bool | None]
    allowUnrelatedHistories: bool | None
    commitMeta: CommitMetaRequest | None


class Merge(_MergeOrTransplant):
    fromHash: HashSpec | None


class Transplant(_MergeOrTransplant):
    hashesToTransplant: Filled[list[HashSpec]]


MISSPELT = {
    "dryRun": "isDryRun",
    "fetchAdditionalInfo": "isFetchAdditionalInfo",
    "returnConflictAsResult": "isReturnConflictAsResult",
}
"""Flags as the original's examples write them, and their names."""


class GetMultipleContentsRequest(Shape):
    requestedKeys: Filled[list[Key]]


class NamespaceUpdate(Shape):
    propertyUpdates: dict[str, str]
    propertyRemovals: list[str]


class RepositoryConfig(OneOf):
    shapes = (GarbageCollectorConfig,)


class UpdateRepositoryConfigRequest(Shape):
    config: RepositoryConfig


BODIES: tuple[Any, ...] = (
    CommitMetaRequest,
    Operation,
    Operations,
    ReferenceRequest,
    MergeKeyBehavior,
    Merge,
    Transplant,
    GetMultipleContentsRequest,
    NamespaceUpdate,
    UpdateRepositoryConfigRequest,
    GarbageCollectorConfig,
)
"""The shapes with a component of their own in the OpenAPI document."""
