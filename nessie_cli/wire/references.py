"""The structs of references in answers. `encode` and `answers` convert them.

An attribute with a plain default is left out if it has that value. One with a factory is always
written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated

from msgspec import Meta, Struct, field

from nessie_cli.wire.commits import CommitMeta, CommitMetaV1, Count, Hash, Instant

MovedType = Annotated[str, Meta(extra_json_schema={"enum": ["BRANCH", "TAG", "SETTING"]})]
BranchOrTag = Annotated[str, Meta(extra_json_schema={"enum": ["BRANCH", "TAG"]})]


class ReferenceMetadata(Struct, rename="camel"):
    """A reference compared to the default branch, and its last commit; null if not applicable."""

    num_commits_ahead: Count | None = field(default_factory=NoneType)
    num_commits_behind: Count | None = field(default_factory=NoneType)
    commit_meta_of_head: CommitMeta | None = field(
        name="commitMetaOfHEAD", default_factory=NoneType
    )
    common_ancestor_hash: Hash | None = field(default_factory=NoneType)
    num_total_commits: Count | None = field(default_factory=NoneType)


class NamedReference(Struct, kw_only=True, omit_defaults=True):
    """A branch or tag."""

    type: BranchOrTag
    name: str = field(default_factory=str)
    hash: Hash
    metadata: ReferenceMetadata | None = None


class Tag(NamedReference, kw_only=True, omit_defaults=True):
    """A tag; `message` is left out if it has none."""

    message: str | None = None


class DetachedReference(Struct, tag_field="type", tag="DETACHED"):
    """A commit that was named without a reference."""

    hash: Hash


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


# -- version 1 -------------------------------------------------------------------------------------


class ReferenceMetadataV1(Struct, rename="camel"):
    """The metadata of a reference in REST v1."""

    num_commits_ahead: Count | None
    num_commits_behind: Count | None
    commit_meta_of_head: CommitMetaV1 | None = field(name="commitMetaOfHEAD")
    common_ancestor_hash: Hash | None
    num_total_commits: Count | None


class NamedReferenceV1(Struct, omit_defaults=True):
    """A branch or tag in REST v1."""

    type: BranchOrTag
    name: str
    hash: Hash
    metadata: ReferenceMetadataV1 | None = None
