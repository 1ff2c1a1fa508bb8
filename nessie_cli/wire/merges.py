"""The structs of conflicts and merges in answers. `encode` and `answers` convert them.

An attribute with a plain default is left out if it has that value. One with a factory is always
written, and may be missing in answers of other servers.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from nessie_cli.model import MergeBehavior
from nessie_cli.wire.commits import CommitMeta, Hash, Null
from nessie_cli.wire.contents import Key, empty_list

Behavior = Annotated[str, Meta(extra_json_schema={"enum": [str(one) for one in MergeBehavior]})]
ConflictKind = Annotated[str, Meta(title="ConflictKind")]


class Rename(Struct):
    """One side of a merge moved the content to another key."""

    old: Key = field(name="from")
    new: Key = field(name="to")
    by: CommitMeta | None = field(default_factory=NoneType)


class KeyRename(Struct):
    """A content gets another key."""

    old: Key = field(name="from")
    new: Key = field(name="to")


class MergeOption(Struct, rename="camel"):
    """A possible decision about a conflict, and what it does to other contents."""

    behavior: Behavior
    deletes: list[Key] = field(default_factory=empty_list)
    renames: list[KeyRename] = field(default_factory=empty_list)
    leaves_out: list[Key] = field(default_factory=empty_list)


class BareConflict(Struct, rename="camel"):
    """A conflict as the REST API reports it."""

    conflict_type: ConflictKind
    key: Key | None = field(default_factory=NoneType)
    message: str = field(default_factory=str)


class ConflictOfOurs(BareConflict, omit_defaults=True, kw_only=True):
    """A conflict of a merge per content, as our servers send it to our clients."""

    source_rename: Rename | None = None
    target_rename: Rename | None = None
    content_id: str | None = None
    base_key: Key | UnsetType | None = UNSET
    theirs_key: Key | UnsetType | None = UNSET
    key_is_ambiguous: bool | UnsetType = UNSET
    commit: Hash | None = None
    options: list[MergeOption] = []


class CleanMergeDetail(Struct, rename="camel"):
    """A key of a merge without its conflict."""

    key: Key
    merge_behavior: Behavior = field(default_factory=lambda: "NORMAL")


class BareMergeDetail(CleanMergeDetail, omit_defaults=True):
    """A key of a merge, as the REST API reports it."""

    conflict: BareConflict | None = None


class ContentPlace(Struct):
    """A commit and a key where a content can be read."""

    hash: Hash
    key: Key


class MergeDetailOfOurs(CleanMergeDetail, omit_defaults=True):
    """A key of a merge per content, as our servers send it to our clients."""

    conflict: ConflictOfOurs | None = None
    source_at: ContentPlace | None = None
    result_at: ContentPlace | None = None
    is_resolved: bool = False


class MergeOutcome(Struct, rename="camel", kw_only=True):
    """The outcome of a merge, without the details of its keys."""

    was_applied: bool = field(default_factory=bool)
    was_successful: bool = field(default_factory=bool)
    resultant_target_hash: Hash | None = field(default_factory=NoneType)
    common_ancestor: Hash | None = field(default_factory=NoneType)
    target_branch: str
    effective_target_hash: Hash | None = field(default_factory=NoneType)
    expected_hash: Hash | None = field(default_factory=NoneType)


class BareMerge(MergeOutcome, kw_only=True):
    """What a merge would have done, as the REST API reports it."""

    details: list[BareMergeDetail] = field(default_factory=empty_list)


class MergeOfOurs(MergeOutcome, omit_defaults=True, kw_only=True):
    """A merge per content, as our servers send it to our clients."""

    details: list[MergeDetailOfOurs] = field(default_factory=empty_list)
    skipped_commits: list[Hash] = []


# -- version 1 -------------------------------------------------------------------------------------

Verdict = Annotated[str, Meta(extra_json_schema={"enum": ["NONE", "UNRESOLVABLE"]})]


class MergeDetailV1(CleanMergeDetail, kw_only=True):
    """A key of a merge, with the deprecated attributes that old clients require."""

    conflict_type: Verdict
    source_commits: list[str] = field(default_factory=empty_list)
    target_commits: list[str] = field(default_factory=empty_list)


class MergeResponseV1(MergeOutcome, kw_only=True):
    """What a merge or transplant did, with the deprecated attributes that old clients require."""

    details: list[MergeDetailV1]
    source_commits: list[str] = field(default_factory=empty_list)
    target_commits: Null = None
