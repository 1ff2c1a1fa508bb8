"""The structs of references in answers, each with `of` for a value of the model.

`answers` converts them back. An attribute with a plain default is left out if it has that value.
One with a factory is always written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field

from nessie_cli import model
from nessie_cli.wire.commits import CommitMeta, CommitMetaV1, optional_meta
from nessie_cli.wire.contents import Key
from nessie_cli.wire.scalars import BranchOrTag, ContentId, Count, Hash, Instant, instant

MovedType = Annotated[str, Meta(extra_json_schema={"enum": ["BRANCH", "TAG", "SETTING"]})]


class ReferenceMetadata(Struct, rename="camel"):
    """A reference compared to the default branch, and its last commit; null if not applicable."""

    num_commits_ahead: Count | None = field(default_factory=NoneType)
    num_commits_behind: Count | None = field(default_factory=NoneType)
    commit_meta_of_head: CommitMeta | None = field(
        name="commitMetaOfHEAD", default_factory=NoneType
    )
    common_ancestor_hash: Hash | None = field(default_factory=NoneType)
    num_total_commits: Count | None = field(default_factory=NoneType)


def _metadata(metadata: model.ReferenceMetadata | None) -> ReferenceMetadata | None:
    if metadata is None:
        return None
    return ReferenceMetadata(
        metadata.ahead,
        metadata.behind,
        optional_meta(metadata.head),
        metadata.common_ancestor,
        metadata.total,
    )


class NamedReference(Struct, kw_only=True, omit_defaults=True):
    """A branch or tag."""

    type: BranchOrTag
    name: str = field(default_factory=str)
    hash: Hash
    metadata: ReferenceMetadata | None = None

    @classmethod
    def of(cls, reference: model.Reference) -> Self:
        """Returns the struct of a branch or tag."""
        return cls(
            type=reference.type.value,
            name=reference.name,
            hash=reference.hash,
            metadata=_metadata(reference.metadata),
        )


class Tag(NamedReference, kw_only=True, omit_defaults=True):
    """A tag; `message` is left out if it has none."""

    message: str | None = None

    @classmethod
    def of(cls, reference: model.Reference) -> Self:
        """Returns the struct of a tag."""
        struct = super().of(reference)
        struct.message = reference.message if isinstance(reference, model.Tag) else None
        return struct


class DetachedReference(Struct, tag_field="type", tag="DETACHED"):
    """A commit that was named without a reference."""

    hash: Hash


_REFERENCES = (NamedReference, DetachedReference)
AnyReference = Annotated[
    Any,
    Meta(
        title="Reference",
        extra_json_schema={"anyOf": [{"$ref": struct.__name__} for struct in _REFERENCES]},
        extra={"structs": _REFERENCES},
    ),
]
"""A reference or a detached commit."""


def reference_struct(reference: model.Reference) -> NamedReference | DetachedReference:
    """Returns a reference as its struct; a detached one has no name."""
    return _detached(reference) or NamedReference.of(reference)


def _detached(reference: model.Reference) -> DetachedReference | None:
    is_detached = reference.type is model.ReferenceType.DETACHED
    return DetachedReference(reference.hash) if is_detached else None


class ReflogEntry(Struct, rename="camel", omit_defaults=True):
    """A move of a reference; `before` is null for a creation, `after` for a deletion.

    For a change of a setting, `reference` is `setting:NAME`, and both hashes are null. Its values
    are left out where it is not set.
    """

    number: Count
    reference: str
    type: MovedType
    before: Hash | None
    after: Hash | None
    time: Instant
    who: str
    operation: str
    message: str
    request_id: str
    value_before: str | None = None
    value_after: str | None = None

    @classmethod
    def of(cls, entry: model.ReflogEntry) -> Self:
        """Returns the struct of an entry of the reflog."""
        return cls(
            number=entry.number,
            reference=entry.reference,
            type=entry.type.value,
            before=entry.before,
            after=entry.after,
            time=instant(entry.time),
            who=entry.who,
            operation=entry.operation,
            message=entry.message,
            request_id=entry.request_id,
            value_before=entry.value_before,
            value_after=entry.value_after,
        )


# -- results of commits ----------------------------------------------------------------------------


class AddedContent(Struct, rename="camel"):
    """A content that a commit created."""

    key: Key
    content_id: ContentId

    @classmethod
    def of(cls, key: model.ContentKey, content_id: str) -> Self:
        """Returns the struct of a created content."""
        return cls(Key.of(key), content_id)


class BareCommit(Struct, rename="camel"):
    """What a commit did; `addedContents` is null if it created nothing."""

    target_branch: AnyReference
    added_contents: list[AddedContent] | None

    @classmethod
    def of(cls, result: model.CommitResult) -> Self:
        """Returns the struct of the result of a commit."""
        added = [AddedContent.of(key, content_id) for key, content_id in result.added.items()]
        return cls(reference_struct(result.reference), added or None)


class CommitOutcome(BareCommit):
    """What a commit did, or would do in a dry run (`wasApplied` is false)."""

    was_applied: bool

    @classmethod
    def of(cls, result: model.CommitResult) -> Self:
        """Returns the struct of the result of a commit."""
        bare = BareCommit.of(result)
        return cls(bare.target_branch, bare.added_contents, result.applied)


# -- version 1 -------------------------------------------------------------------------------------


class ReferenceMetadataV1(Struct, rename="camel"):
    """The metadata of a reference in REST v1."""

    num_commits_ahead: Count | None
    num_commits_behind: Count | None
    commit_meta_of_head: CommitMetaV1 | None = field(name="commitMetaOfHEAD")
    common_ancestor_hash: Hash | None
    num_total_commits: Count | None


def _metadata_v1(metadata: model.ReferenceMetadata | None) -> ReferenceMetadataV1 | None:
    if metadata is None:
        return None
    return ReferenceMetadataV1(
        metadata.ahead,
        metadata.behind,
        None if metadata.head is None else CommitMetaV1.of(metadata.head),
        metadata.common_ancestor,
        metadata.total,
    )


class NamedReferenceV1(Struct, omit_defaults=True):
    """A branch or tag in REST v1."""

    type: BranchOrTag
    name: str
    hash: Hash
    metadata: ReferenceMetadataV1 | None = None


_REFERENCES_V1 = (NamedReferenceV1, DetachedReference)
AnyReferenceV1 = Annotated[
    Any,
    Meta(
        title="ReferenceV1",
        extra_json_schema={"anyOf": [{"$ref": struct.__name__} for struct in _REFERENCES_V1]},
        extra={"structs": _REFERENCES_V1},
    ),
]
"""A reference or a detached commit in REST v1."""


def reference_struct_v1(reference: model.Reference) -> NamedReferenceV1 | DetachedReference:
    """Returns a reference as its struct in REST v1."""
    return _detached(reference) or NamedReferenceV1(
        reference.type.value,
        reference.name,
        reference.hash,
        _metadata_v1(reference.metadata),
    )
