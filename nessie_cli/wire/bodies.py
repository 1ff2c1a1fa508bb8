"""Request bodies of REST v2 other than a commit: references, merge, transplant, requested keys.

What a hash or name means, and whether it may be missing, is decided by whoever executes the request; here they are only well-formed. Sources:
reference 3, 9.1, 11.3, 12.1, 12.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, Content, ContentKey, KeyBehavior, MergeBehavior, ReferenceType, check_reference_name
from nessie_cli.wire import requests
from nessie_cli.wire.decode import checked_key, decode_commit_meta, decode_content_value, object_with_type
from nessie_cli.wire.guards import JsonObject, check, guard_of
from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.leniency import is_lenient

_HASH = re.compile(r"(?:[0-9a-fA-F]{8,64})?(?:[~*^](?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z|\d+))*")
_HASH_RULE = (
    "Hash with optional relative part must consist of either a valid commit hash (the hex representation of 4-32 bytes), "
    "or relative parts ('~' or '^' + a number, '*' + milliseconds or an ISO instant), or both"
)
_DEFAULT_BRANCH = "-"
"""Passes as a name everywhere; who executes the request knows whether it stands for the default branch there."""


@dataclass(frozen=True, slots=True)
class ReferenceBody:
    """A reference in a request. A detached one has an empty name; `hash` may carry relative parts, or be None."""

    type: ReferenceType
    name: str
    hash: str | None


@dataclass(frozen=True, slots=True)
class MergeBody:
    """A merge. `meta` is `commitMeta`, with `message` where its own is empty, or `message` alone, or None."""

    source: str
    source_hash: str | None
    meta: CommitMeta | None = None
    behaviors: tuple[KeyBehavior, ...] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    dry_run: bool = False
    conflict_as_result: bool = False
    follow_renames: bool = False
    unrelated: bool = False


@dataclass(frozen=True, slots=True)
class TransplantBody:
    """A transplant; `hashes` are the commits, oldest first, at least one. `meta` is an addition of our own, for one that is transplanted alone."""

    source: str
    hashes: tuple[str, ...]
    message: str | None = None
    meta: CommitMeta | None = None
    behaviors: tuple[KeyBehavior, ...] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    dry_run: bool = False
    conflict_as_result: bool = False
    follow_renames: bool = False


# -- decoding -----------------------------------------------------------------------------------------------------------------------------


def decode_reference(data: Any, path: str = "") -> ReferenceBody:
    """A branch, tag or detached reference; a named one needs its name, a detached one its hash."""
    name = object_with_type(data, path, ReferenceType)
    if name not in ReferenceType.__members__:
        raise fault(join(path, "type"), f"{describe(name)} is no type of reference ({', '.join(ReferenceType)})")
    guard: Any = check(guard_of(requests.LooseReference), data, path)
    hash_ = None if guard.hash is None else _well_formed_hash(guard.hash, join(path, "hash"))
    if name == ReferenceType.DETACHED:
        if hash_ is None:
            raise fault(join(path, "hash"), "is missing")
        return ReferenceBody(ReferenceType.DETACHED, "", hash_)
    if guard.name is None:
        raise fault(join(path, "name"), "is missing")
    return ReferenceBody(ReferenceType(name), _well_formed_name(guard.name, join(path, "name")), hash_)


def decode_merge(data: Any) -> MergeBody:
    """The body of a merge."""
    guard: Any = check(guard_of(requests.Merge), data, "")
    return MergeBody(
        source=_well_formed_name(guard.from_ref_name, "fromRefName"),
        source_hash=None if guard.from_hash is None else _well_formed_hash(guard.from_hash, "fromHash"),
        meta=_merge_meta(guard),
        behaviors=_behaviors(guard),
        default_behavior=_behavior(guard.default_key_merge_mode, "defaultKeyMergeMode"),
        dry_run=bool(guard.is_dry_run or guard.dry_run),
        conflict_as_result=bool(guard.is_return_conflict_as_result or guard.return_conflict_as_result),
        follow_renames=bool(guard.follow_renames),
        unrelated=bool(guard.allow_unrelated_histories),
    )


def decode_transplant(data: Any) -> TransplantBody:
    """The body of a transplant."""
    guard: Any = check(guard_of(requests.Transplant), data, "")
    return TransplantBody(
        source=_well_formed_name(guard.from_ref_name, "fromRefName"),
        hashes=tuple(_well_formed_hash(h, join("hashesToTransplant", i)) for i, h in enumerate(guard.hashes_to_transplant)),
        message=guard.message,
        meta=None if guard.commit_meta is None else decode_commit_meta(guard.commit_meta),
        behaviors=_behaviors(guard),
        default_behavior=_behavior(guard.default_key_merge_mode, "defaultKeyMergeMode"),
        dry_run=bool(guard.is_dry_run or guard.dry_run),
        conflict_as_result=bool(guard.is_return_conflict_as_result or guard.return_conflict_as_result),
        follow_renames=bool(guard.follow_renames),
    )


def decode_requested_keys(data: Any) -> list[ContentKey]:
    """The keys of `{"requestedKeys": [...]}`, at least one; a key without elements is allowed, it names nothing."""
    guard: Any = check(guard_of(requests.GetMultipleContentsRequest), data, "")
    return [checked_key(key, join("requestedKeys", index), allow_empty=True) for index, key in enumerate(guard.requested_keys)]


def _merge_meta(guard: Any) -> CommitMeta | None:
    if guard.commit_meta is None:
        return None if guard.message is None else CommitMeta(guard.message)
    meta = decode_commit_meta(guard.commit_meta)
    return meta if meta.message or guard.message is None else structs.replace(meta, message=guard.message)


def _behaviors(guard: Any) -> tuple[KeyBehavior, ...]:
    found: dict[ContentKey, KeyBehavior] = {}
    for index, item in enumerate(guard.key_merge_modes or ()):
        path = join("keyMergeModes", index)
        one = _key_behavior(item, path)
        if one.key in found:
            raise fault(path, f"the key {one.key} occurs twice")
        found[one.key] = one
    return tuple(found.values())


def _key_behavior(guard: Any, path: str) -> KeyBehavior:
    return KeyBehavior(
        checked_key(guard.key, join(path, "key")),
        _behavior(guard.merge_behavior, join(path, "mergeBehavior")),
        _content(guard.expected_target_content, join(path, "expectedTargetContent")),
        _content(guard.resolved_content, join(path, "resolvedContent")),
    )


def _content(data: JsonObject | None, path: str) -> Content | None:
    return None if data is None else decode_content_value(data, path)


def _behavior(text: str | None, path: str) -> MergeBehavior:
    if text is None:
        return MergeBehavior.NORMAL
    if is_lenient() and text.isdecimal() and int(text) < len(MergeBehavior):
        return list(MergeBehavior)[int(text)]
    if text not in MergeBehavior.__members__:
        raise fault(path, f"{describe(text)} is no merge behavior ({', '.join(MergeBehavior)})")
    return MergeBehavior(text)


def _well_formed_name(text: str, path: str) -> str:
    try:
        return text if text == _DEFAULT_BRANCH else check_reference_name(text)
    except InvalidInput as error:
        raise fault(path, error.message) from None


def _well_formed_hash(text: str, path: str) -> str:
    if not text or not _HASH.fullmatch(text):
        raise fault(path, f"{_HASH_RULE} - but was: {text}")
    return text


def decode_namespace_update(data: Any) -> tuple[dict[str, str], frozenset[str]]:
    """The body that changes a namespace's properties: what is set, and what is removed."""
    guard: Any = check(guard_of(requests.NamespaceUpdate), data, "")
    return guard.property_updates, frozenset(guard.property_removals)
