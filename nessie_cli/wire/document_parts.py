"""What the JSON documents of answers are made of, as types: keys, contents, commits, references, and what is listed of them. See `documents`."""
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
