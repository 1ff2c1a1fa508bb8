"""The structs of request bodies, and of the configuration objects in them.

`decode` converts them to values. `schemas` describes them in the OpenAPI document, under the names
of their classes.
"""
# ruff: noqa: D101 (the names are the specification's)

from __future__ import annotations

from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field, to_builtins

from nessie_cli import model
from nessie_cli.model import ReferenceType
from nessie_cli.wire.contents import (
    MOST_ITEMS,
    Int32,
    Key,
    Properties,
    RestoredFrom,
    Texts,
    content_json,
)
from nessie_cli.wire.scalars import SHA_256, Behavior, Json

# Contents and some texts are checked by `decode`, whose messages say more.
ContentObject = Annotated[Json, Meta(extra_json_schema={"$ref": "#/components/schemas/Content"})]
Hash = Annotated[str, Meta(extra_json_schema=SHA_256)]
HashSpec = Annotated[str, Meta(extra_json_schema={"pattern": f"^{model.FULL_HASH}{model.STEPS}$"})]
"""A hash with relative parts after it."""
ReferenceName = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^(-|[A-Za-z](?:[A-Za-z0-9./_-]*[A-Za-z0-9_-])?)$"})
]
KindOfReference = Annotated[
    str, Meta(extra_json_schema={"enum": [str(one) for one in ReferenceType]})
]
MOST_DECISIONS = 20_000
"""The most keys with a behavior of their own in a merge or transplant."""
MOST_DESCRIPTION = 1_000
"""The longest description of a combined table."""
MOST_COPIED = 5_000
"""The most commits of a transplant."""
MOST_REQUESTED = 20_000
"""The most keys whose contents one request asks for."""
MOST_POLICIES = 10_000
"""The most retention policies of a repository."""
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class _Body(Struct, rename="camel"):
    """The base of all bodies."""


# -- commits ---------------------------------------------------------------------------------------


class CommitMetaRequest(_Body, forbid_unknown_fields=True):
    """The metadata of a new commit, by singular or plural names.

    The server sets the last four attributes.
    """

    message: str
    author: str | None = None
    authors: Texts | None = None
    signed_off_by: str | None = None
    all_signed_off_by: Texts | None = None
    author_time: Time | None = None
    properties: Properties | None = None
    all_properties: Annotated[dict[str, Texts], Meta(max_length=MOST_ITEMS)] | None = None
    hash: Any = None
    committer: Any = None
    commit_time: Any = None
    parent_commit_hashes: Any = None


class Put(_Body, tag_field="type", tag="PUT", omit_defaults=True):
    """A Put. `metadata` and `documentation` are checked and not kept.

    `restoredFrom` brings a deleted content back under its id.
    """

    key: Key
    content: ContentObject
    expected_content: ContentObject | None = None
    restored_from: RestoredFrom | None = None
    metadata: list[Json] | None = None
    documentation: Json | None = None

    @classmethod
    def of(cls, put: model.Put) -> Self:
        """Returns the struct of a Put."""
        expected, origin = put.expected_content, put.restored_from
        return cls(
            Key.of(put.key),
            content_json(put.content),
            None if expected is None else content_json(expected),
            None if origin is None else RestoredFrom.of(origin),
        )


class Delete(_Body, tag_field="type", tag="DELETE"):
    key: Key


class Unchanged(_Body, tag_field="type", tag="UNCHANGED"):
    key: Key


def encode_operation(operation: model.Operation) -> Json:
    """Encodes an operation for a server; `decode_operation` is the inverse."""
    struct: Put | Delete | Unchanged
    match operation:
        case model.Put():
            struct = Put.of(operation)
        case model.Delete():
            struct = Delete(Key.of(operation.key))
        case model.Unchanged():
            struct = Unchanged(Key.of(operation.key))
    body: Json = to_builtins(struct)
    return body


class Operations(_Body):
    commit_meta: CommitMetaRequest
    operations: Annotated[list[Put | Delete | Unchanged], Meta(min_length=1)]


# -- references ------------------------------------------------------------------------------------


class ReferenceRequest(_Body):
    """A branch or tag with its name, or a detached commit with its hash."""

    type: KindOfReference
    name: ReferenceName | None = None
    hash: HashSpec | None = None


# -- merges ----------------------------------------------------------------------------------------


class MergeKeyBehavior(_Body):
    key: Key
    merge_behavior: Behavior
    expected_target_content: ContentObject | None = None
    resolved_content: ContentObject | None = None
    content_id: str | None = None
    commit: Hash | None = None


class _MergeOrTransplant(_Body):
    """The common attributes of a merge and a transplant.

    Three flags have two spellings: the one that clients send, and the one of the original's
    examples. `perContent` merges contents instead of keys, an extension.
    """

    from_ref_name: ReferenceName
    message: Annotated[str, Meta(min_length=1)] | None = None
    key_merge_modes: Annotated[list[MergeKeyBehavior], Meta(max_length=MOST_DECISIONS)] | None = (
        None
    )
    default_key_merge_mode: Behavior | None = None
    is_dry_run: bool | None = None
    dry_run: bool | None = None
    is_fetch_additional_info: bool | None = None
    fetch_additional_info: bool | None = None
    is_return_conflict_as_result: bool | None = None
    return_conflict_as_result: bool | None = None
    per_content: bool | None = None
    allow_unrelated_histories: bool | None = None
    allow_failed_run: bool | None = None
    commit_meta: CommitMetaRequest | None = None


class Merge(_MergeOrTransplant):
    from_hash: HashSpec | None = None


class Transplant(_MergeOrTransplant, kw_only=True):
    hashes_to_transplant: Annotated[list[HashSpec], Meta(min_length=1, max_length=MOST_COPIED)]


class Combination(_Body, omit_defaults=True, forbid_unknown_fields=True):
    """How a server combines the tables in conflict, in the body of a merge or transplant."""

    is_serializable: bool = False
    refuses_same_keys: bool = False
    excluded: Annotated[list[Key], Meta(max_length=MOST_DECISIONS)] = []

    @classmethod
    def of(cls, rules: model.CombinationRules) -> Self:
        """Returns the struct of the rules."""
        excluded = list(map(Key.of, rules.excluded))
        return cls(rules.is_serializable, rules.refuses_same_keys, excluded)


class TablePlace(_Body):
    """A commit and a key where a table can be read."""

    hash: Hash
    key: Key


class TableCombinationRequest(_Body):
    """Three states of a table, which the server combines without a commit.

    `description` names the merge or revert in the summary of the new snapshot.
    """

    base: TablePlace
    ours: TablePlace
    theirs: TablePlace
    description: Annotated[str, Meta(max_length=MOST_DESCRIPTION)] = ""
    combination: Combination = field(default_factory=Combination)
    is_dry_run: bool = False


MISSPELT = {
    "dryRun": "isDryRun",
    "fetchAdditionalInfo": "isFetchAdditionalInfo",
    "returnConflictAsResult": "isReturnConflictAsResult",
}
"""Flags as the original's examples write them, and their names."""


# -- keys, namespaces and configuration ------------------------------------------------------------


class GetMultipleContentsRequest(_Body):
    requested_keys: Annotated[list[Key], Meta(min_length=1, max_length=MOST_REQUESTED)]


class NamespaceUpdate(_Body):
    property_updates: Properties = {}
    property_removals: Texts = []


class CutoffPolicy(_Body):
    reference_name_pattern: str
    policy: str


class GarbageCollectorConfig(_Body, tag_field="type", tag="GARBAGE_COLLECTOR", omit_defaults=True):
    default_cutoff_policy: str | None = None
    per_ref_cutoff_policies: (
        Annotated[list[CutoffPolicy], Meta(max_length=MOST_POLICIES)] | None
    ) = None
    new_files_grace_period: str | None = None
    expected_file_count_per_content: Int32 | None = None


class UpdateRepositoryConfigRequest(_Body):
    config: GarbageCollectorConfig


BODIES: tuple[Any, ...] = (
    Operations,
    ReferenceRequest,
    Merge,
    Transplant,
    GetMultipleContentsRequest,
    NamespaceUpdate,
    UpdateRepositoryConfigRequest,
)
"""The bodies of all requests."""
