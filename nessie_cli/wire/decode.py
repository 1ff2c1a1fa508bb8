"""Decodes the JSON of requests to values. `batches` reads files of operations.

Every function raises `InvalidInput` with one line that names the place
(`operations[17].content.snapshotId: ...`) and the fault. The functions named `decode_...` take
parsed JSON, those of parts also the path to it; `decode_content` takes text.
Hashes and names are only checked for their form; the caller decides whether they exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    FULL_HASH,
    STEPS,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    KeyBehavior,
    MergeBehavior,
    Operation,
    Put,
    ReferenceType,
    RestoredFrom,
    Unchanged,
    check_reference_name,
    check_revision_size,
    check_writable,
)
from nessie_cli.wire import bodies
from nessie_cli.wire.contents import Key
from nessie_cli.wire.contents import RestoredFrom as RestoredFromStruct
from nessie_cli.wire.json_text import describe, fault, join, parse_json
from nessie_cli.wire.scalars import Json
from nessie_cli.wire.validation import checked, is_lenient
from nessie_cli.wire.values import below, content_of, decode_instant, key_of, object_with_type

MOST_VALUES_OF_OPERATION = 250_000
"""The most JSON values of an operation. The largest namespace has less than half of them."""

_CONTAINERS = frozenset((dict, list))
_HASH = re.compile(rf"(?:{FULL_HASH})?{STEPS}")
_WHOLE_HASH = re.compile(r"[0-9a-f]{64}")
_HASH_RULE = (
    "Hash with optional relative part must consist of either a valid commit hash"
    " (the hex representation of 4-32 bytes), or relative parts"
    " ('~' or '^' + a number, '*' + milliseconds or an ISO instant), or both"
)
_DEFAULT_BRANCH = "-"
"""Passes as a name everywhere; the repository knows where it stands for the default branch."""

_SERVER_SETS = (
    ("committer", "committer"),
    ("commit_time", "commit time"),
    ("hash", "commit hash"),
    ("parent_commit_hashes", "parent commit hashes"),
)


# -- values ----------------------------------------------------------------------------------------


def decode_key(data: Any, path: str = "key") -> ContentKey:
    """Decodes a content key. A key without elements is invalid."""
    return key_of(checked(Key, data, path), path)


def decode_content_value(
    data: Any, path: str = "content", *, allow_unknown: bool = False
) -> Content:
    """Decodes a content. `allow_unknown` keeps one of an unknown type with all its attributes."""
    content = content_of(data, path, allow_unknown=allow_unknown)
    try:
        check_writable(content)
    except InvalidInput as error:
        raise below(path, content.type, error) from None
    return content


def _decode_put(data: Any, path: str, *, allow_unknown: bool) -> Put:
    put = checked(bodies.Put, data, path)
    return Put(
        key_of(put.key, join(path, "key")),
        decode_content_value(put.content, join(path, "content"), allow_unknown=allow_unknown),
        _content(put.expected_content, join(path, "expectedContent"), allow_unknown=allow_unknown),
        _restored_from(put.restored_from, join(path, "restoredFrom")),
    )


def _restored_from(place: RestoredFromStruct | None, path: str) -> RestoredFrom | None:
    if place is None:
        return None
    return RestoredFrom(
        _whole_hash(place.hash, join(path, "hash")), key_of(place.key, join(path, "key"))
    )


def _decode_delete(data: Any, path: str, **_: bool) -> Delete:
    _refuse_expected_content(data, path)
    return Delete(key_of(checked(bodies.Delete, data, path).key, join(path, "key")))


def _decode_unchanged(data: Any, path: str, **_: bool) -> Unchanged:
    _refuse_expected_content(data, path)
    return Unchanged(key_of(checked(bodies.Unchanged, data, path).key, join(path, "key")))


def _refuse_expected_content(data: Json, path: str) -> None:
    # It would not be compared, and the caller would rely on it.
    if data.get("expectedContent") is not None:
        raise fault(join(path, "expectedContent"), "only a PUT can have an expected content")


_OPERATIONS: Mapping[str, Callable[..., Operation]] = {
    "PUT": _decode_put,
    "DELETE": _decode_delete,
    "UNCHANGED": _decode_unchanged,
}


def decode_operation(
    data: Any, path: str = "operation", *, allow_unknown: bool = False
) -> Operation:
    """Decodes an operation; `bodies.encode_operation` is the inverse."""
    name = object_with_type(data, path, _OPERATIONS)
    decode = _OPERATIONS.get(name)
    if decode is None:
        near = {"UNMODIFIED": "UNCHANGED"}.get(name.upper(), name.upper())
        offer = f"write {near}" if near in _OPERATIONS else f"known are {', '.join(_OPERATIONS)}"
        raise fault(join(path, "type"), f"{describe(name)} is not an operation ({offer})")
    return decode(data, path, allow_unknown=allow_unknown)


def decode_commit_meta(data: Any, path: str = "commitMeta") -> CommitMeta:
    """Decodes the metadata that a client may set, by singular or plural names (the plural wins).

    Refuses unknown attributes and those that the server sets, with the original server's messages.
    """
    return _commit_meta(checked(bodies.CommitMetaRequest, data, path), path)


def _commit_meta(meta: bodies.CommitMetaRequest, path: str) -> CommitMeta:
    for field, label in _SERVER_SETS:
        if getattr(meta, field) not in (None, []):
            raise InvalidInput(
                f"Cannot set the {label} on the client side. It is set by the server."
            )
    properties = meta.all_properties
    if properties is None:
        properties = {name: [value] for name, value in (meta.properties or {}).items()}
    return CommitMeta(
        message=meta.message,
        authors=_plural(meta.authors, meta.author),
        signed_off_by=_plural(meta.all_signed_off_by, meta.signed_off_by),
        author_time=None
        if meta.author_time is None
        else decode_instant(meta.author_time, join(path, "authorTime")),
        properties={name: tuple(values) for name, values in properties.items() if values},
    )


def _plural(many: list[str] | None, single: str | None) -> tuple[str, ...]:
    if many is not None:
        return tuple(many)
    return () if single is None else (single,)


def decode_operations(
    data: Any, *, allow_unknown: bool = False
) -> tuple[CommitMeta, list[Operation]]:
    """Decodes the body of a commit: `commitMeta` and `operations`, both required.

    Empties the list of operations: a million of them as JSON take several times the memory.
    """
    if not isinstance(data, dict):
        raise fault("", f"must be an object, not {describe(data)}")
    for name in ("operations", "commitMeta"):
        if data.get(name) is None:
            raise fault(name, "is missing")
    _check_size(data["commitMeta"], "commitMeta")
    meta = decode_commit_meta(data["commitMeta"])
    return meta, _operations(data["operations"], allow_unknown=allow_unknown)


def _operations(data: Any, *, allow_unknown: bool) -> list[Operation]:
    if not isinstance(data, list):
        raise fault("operations", f"must be a list, not {describe(data)}")
    if not data:
        raise fault("operations", "holds no operation")
    data.reverse()
    operations = []
    for index in range(len(data)):
        path = f"operations[{index}]"
        _check_size(data[-1], path)
        operations.append(decode_operation(data.pop(), path, allow_unknown=allow_unknown))
    return operations


def _check_size(data: Any, path: str) -> None:
    """Refuses a value that would be decoded by a long call, during which no other thread runs."""
    parents, count = [data] if type(data) in _CONTAINERS else [], 0
    for parent in parents:
        count += len(parent)
        if count > MOST_VALUES_OF_OPERATION:
            raise fault(
                path,
                f"has more than {MOST_VALUES_OF_OPERATION:,} values, the limit for an operation and"
                " for the metadata of a commit",
            )
        items = parent.values() if type(parent) is dict else parent
        parents += [item for item in items if type(item) in _CONTAINERS]


# -- bodies of references, merges and transplants --------------------------------------------------


class ReferenceBody(Struct, frozen=True):
    """A reference in a request.

    A detached one has an empty name; `hash` may have relative parts, or be None.
    """

    type: ReferenceType
    name: str
    hash: str | None


class _CombiningBody(Struct, frozen=True, kw_only=True):
    """The attributes that a merge and a transplant share."""

    source: str
    meta: CommitMeta | None = None
    behaviors: tuple[KeyBehavior, ...] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    dry_run: bool = False
    conflict_as_result: bool = False
    per_content: bool = False
    allows_failed_run: bool = False


class MergeBody(_CombiningBody, frozen=True, kw_only=True):
    """A merge.

    `meta` is `commitMeta` with `message` as its default, or `message` alone, or None.
    """

    source_hash: str | None
    unrelated: bool = False


class TransplantBody(_CombiningBody, frozen=True, kw_only=True):
    """A transplant; `hashes` are the commits, oldest first, at least one.

    `meta` is an extension: the metadata of the copy of a single commit.
    """

    hashes: tuple[str, ...]
    message: str | None = None


def decode_reference(data: Any, path: str = "") -> ReferenceBody:
    """Decodes a reference; a named one needs its name, a detached one its hash."""
    name = object_with_type(data, path, ReferenceType)
    if name not in ReferenceType.__members__:
        raise fault(
            join(path, "type"),
            f"{describe(name)} is not a type of reference ({', '.join(ReferenceType)})",
        )
    body = checked(bodies.ReferenceRequest, data, path)
    hash_ = None if body.hash is None else _well_formed_hash(body.hash, join(path, "hash"))
    if name == ReferenceType.DETACHED:
        if hash_ is None:
            raise fault(join(path, "hash"), "is missing")
        return ReferenceBody(ReferenceType.DETACHED, "", hash_)
    if body.name is None:
        raise fault(join(path, "name"), "is missing")
    return ReferenceBody(
        ReferenceType(name), _well_formed_name(body.name, join(path, "name")), hash_
    )


def decode_merge(data: Any) -> MergeBody:
    """Decodes the body of a merge."""
    body = checked(bodies.Merge, data, "")
    return MergeBody(
        source=_well_formed_name(body.from_ref_name, "fromRefName"),
        source_hash=None
        if body.from_hash is None
        else _well_formed_hash(body.from_hash, "fromHash"),
        meta=_merge_meta(body),
        **_merge_options(body),
        unrelated=bool(body.allow_unrelated_histories),
    )


def decode_transplant(data: Any) -> TransplantBody:
    """Decodes the body of a transplant."""
    body = checked(bodies.Transplant, data, "")
    return TransplantBody(
        source=_well_formed_name(body.from_ref_name, "fromRefName"),
        hashes=tuple(
            _well_formed_hash(h, join("hashesToTransplant", i))
            for i, h in enumerate(body.hashes_to_transplant)
        ),
        message=body.message,
        meta=None if body.commit_meta is None else _commit_meta(body.commit_meta, "commitMeta"),
        **_merge_options(body),
    )


def _merge_options(body: bodies.Merge | bodies.Transplant) -> dict[str, Any]:
    """Decodes the common options of merge and transplant. Some flags have two spellings."""
    return {
        "behaviors": _behaviors(body),
        "allows_failed_run": bool(body.allow_failed_run),
        "default_behavior": _behavior(body.default_key_merge_mode, "defaultKeyMergeMode"),
        "dry_run": bool(body.is_dry_run or body.dry_run),
        "conflict_as_result": bool(
            body.is_return_conflict_as_result or body.return_conflict_as_result
        ),
        "per_content": bool(body.per_content),
    }


def decode_requested_keys(data: Any) -> list[ContentKey]:
    """Decodes the keys of `{"requestedKeys": [...]}`, at least one; keys may have no elements."""
    body = checked(bodies.GetMultipleContentsRequest, data, "")
    return [
        key_of(key, join("requestedKeys", index), allow_empty=True)
        for index, key in enumerate(body.requested_keys)
    ]


def _merge_meta(body: bodies.Merge) -> CommitMeta | None:
    if body.commit_meta is None:
        return None if body.message is None else CommitMeta(body.message)
    meta = _commit_meta(body.commit_meta, "commitMeta")
    return (
        meta
        if meta.message or body.message is None
        else structs.replace(meta, message=body.message)
    )


def _behaviors(body: bodies.Merge | bodies.Transplant) -> tuple[KeyBehavior, ...]:
    behaviors: dict[Any, KeyBehavior] = {}
    for index, item in enumerate(body.key_merge_modes or ()):
        path = join("keyMergeModes", index)
        behavior = _key_behavior(item, path)
        name = (behavior.key, behavior.content_id, behavior.commit)
        if name in behaviors:
            raise fault(path, f"the key {behavior.key} occurs twice")
        behaviors[name] = behavior
    return tuple(behaviors.values())


def _key_behavior(mode: bodies.MergeKeyBehavior, path: str) -> KeyBehavior:
    return KeyBehavior(
        key_of(mode.key, join(path, "key")),
        _behavior(mode.merge_behavior, join(path, "mergeBehavior")),
        _content(mode.expected_target_content, join(path, "expectedTargetContent")),
        _content(mode.resolved_content, join(path, "resolvedContent")),
        mode.content_id,
        None if mode.commit is None else _whole_hash(mode.commit, join(path, "commit")),
    )


def _content(data: Json | None, path: str, *, allow_unknown: bool = False) -> Content | None:
    return None if data is None else decode_content_value(data, path, allow_unknown=allow_unknown)


def _behavior(text: str | None, path: str) -> MergeBehavior:
    if text is None:
        return MergeBehavior.NORMAL
    if is_lenient() and text.isdecimal() and text in map(str, range(len(MergeBehavior))):
        return list(MergeBehavior)[int(text)]
    if text not in MergeBehavior.__members__:
        raise fault(path, f"{describe(text)} is not a merge behavior ({', '.join(MergeBehavior)})")
    return MergeBehavior(text)


def _well_formed_name(text: str, path: str) -> str:
    try:
        return text if text == _DEFAULT_BRANCH else check_reference_name(text)
    except InvalidInput as error:
        raise fault(path, error.message) from None


def _whole_hash(text: str, path: str) -> str:
    if not _WHOLE_HASH.fullmatch(text):
        raise fault(path, f"{describe(text)} is not a commit hash of 64 digits")
    return text


def _well_formed_hash(text: str, path: str) -> str:
    try:
        check_revision_size(text)
    except InvalidInput as error:
        raise fault(path, error.message) from None
    if not text or not _HASH.fullmatch(text):
        raise fault(path, f"{_HASH_RULE} - but was: {text}")
    return text


def decode_namespace_update(data: Any) -> tuple[dict[str, str], frozenset[str]]:
    """Decodes an update of a namespace's properties: values to set, and names to remove."""
    body = checked(bodies.NamespaceUpdate, data, "")
    return body.property_updates, frozenset(body.property_removals)


# -- text ------------------------------------------------------------------------------------------


def decode_content(data: str | bytes, place: str, *, allow_unknown: bool = False) -> Content:
    """Decodes a content from JSON text; `place` names the file in errors."""
    value = parse_json(data, place)
    try:
        return decode_content_value(value, "", allow_unknown=allow_unknown)
    except InvalidInput as error:
        raise fault(place, error.message) from None
