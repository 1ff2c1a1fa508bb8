"""Decodes the JSON of requests and of batch files to values.

Every function raises `InvalidInput` with one line that names the place
(`operations[17].content.snapshotId: ...`) and the fault. The functions named `decode_...` take
parsed JSON, those of parts also the path to it; `decode_content` and `decode_batch` take text.
Hashes and names are only checked for their form; the caller decides whether they exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CONTENT_TYPES,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    KeyBehavior,
    MergeBehavior,
    Operation,
    Put,
    ReferenceType,
    Unchanged,
    check_reference_name,
    check_revision_size,
    check_writable,
)
from nessie_cli.model.progress import Progress, with_progress
from nessie_cli.wire import bodies, shapes
from nessie_cli.wire.guards import JsonObject, check, guard_of, is_lenient
from nessie_cli.wire.json_text import describe, fault, join, parse_first, parse_json, read_text
from nessie_cli.wire.values import decode_instant, object_with_type, unknown_content

_HASH = re.compile(
    r"(?:[0-9a-fA-F]{8,64})?(?:[~*^](?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z|\d+))*"
)
_WHOLE_HASH = re.compile(r"[0-9a-f]{64}")
_HASH_RULE = (
    "Hash with optional relative part must consist of either a valid commit hash"
    " (the hex representation of 4-32 bytes), or relative parts"
    " ('~' or '^' + a number, '*' + milliseconds or an ISO instant), or both"
)
_DEFAULT_BRANCH = "-"
"""Passes as a name everywhere; the repository knows where it stands for the default branch."""

_CONTENTS = {name: guard_of(shape) for name, shape in shapes.CONTENTS.items()}
_KEY, _PUT, _OF_KEY, _META = map(
    guard_of, (shapes.Key, bodies.Put, shapes.LoggedDelete, bodies.CommitMetaRequest)
)
# Created once: a large commit needs them for every operation.
_SERVER_SETS = (
    ("committer", "committer"),
    ("commit_time", "commit time"),
    ("hash", "commit hash"),
    ("parent_commit_hashes", "parent commit hashes"),
)


# -- values ----------------------------------------------------------------------------------------


def decode_key(data: Any, path: str = "key", *, allow_empty: bool = False) -> ContentKey:
    """Decodes a content key. A key without elements is invalid unless `allow_empty`."""
    return _key(check(_KEY, data, path), path, allow_empty=allow_empty)


def _key(guard: Any, path: str, *, allow_empty: bool = False) -> ContentKey:
    """Returns the key of a model that pydantic has validated."""
    if not guard.elements and not allow_empty:
        raise fault(path, "Content key must not be empty")
    try:
        return ContentKey(guard.elements)
    except InvalidInput as error:
        raise fault(path, error.message) from None


def decode_content_value(
    data: Any, path: str = "content", *, allow_unknown: bool = False
) -> Content:
    """Decodes a content. `allow_unknown` keeps one of an unknown type with all its attributes."""
    name = object_with_type(data, path, CONTENT_TYPES)
    if name in _CONTENTS:
        attributes = check(_CONTENTS[name], data, path).__dict__
        try:
            content = CONTENT_TYPES[name](**attributes)
            check_writable(content)
        except InvalidInput as error:
            # The message names the type as the owner of an attribute; here, the path is the owner.
            raise InvalidInput(join(path, error.message.removeprefix(f"{name}."))) from None
        return content
    if allow_unknown:
        return unknown_content(
            name, check(guard_of(bodies.ForeignContent), data, path).__dict__["id"], data, path
        )
    near = (
        f"write {name.upper()}"
        if name.upper() in CONTENT_TYPES
        else f"known are {', '.join(CONTENT_TYPES)}"
    )
    raise fault(join(path, "type"), f"{describe(name)} is not a content type ({near})")


def _decode_put(data: Any, path: str, *, allow_unknown: bool) -> Put:
    guard: Any = check(_PUT, data, path)
    expected = guard.expected_content
    return Put(
        _key(guard.key, join(path, "key")),
        decode_content_value(guard.content, join(path, "content"), allow_unknown=allow_unknown),
        None
        if expected is None
        else decode_content_value(
            expected, join(path, "expectedContent"), allow_unknown=allow_unknown
        ),
    )


def _of_key(operation: type[Delete | Unchanged]) -> Callable[..., Operation]:
    def decode(data: Any, path: str, *, allow_unknown: bool) -> Operation:  # noqa: ARG001 - one signature for all operations
        guard: Any = check(_OF_KEY, data, path)
        if data.get("expectedContent") is not None:
            # It would not be compared, and the caller would rely on it.
            raise fault(join(path, "expectedContent"), "only a PUT can have an expected content")
        return operation(_key(guard.key, join(path, "key")))

    return decode


_OPERATIONS: Mapping[str, Callable[..., Operation]] = {
    "PUT": _decode_put,
    "DELETE": _of_key(Delete),
    "UNCHANGED": _of_key(Unchanged),
}


def decode_operation(
    data: Any, path: str = "operation", *, allow_unknown: bool = False
) -> Operation:
    """Decodes an operation; `encode.encode_operation` is the inverse."""
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
    guard: Any = check(_META, data, path)
    for field, words in _SERVER_SETS:
        if getattr(guard, field) not in (None, []):
            raise InvalidInput(
                f"Cannot set the {words} on the client side. It is set by the server."
            )
    properties = guard.all_properties
    if properties is None:
        properties = {name: [value] for name, value in (guard.properties or {}).items()}
    return CommitMeta(
        message=guard.message,
        authors=_plural(guard.authors, guard.author),
        signed_off_by=_plural(guard.all_signed_off_by, guard.signed_off_by),
        author_time=None
        if guard.author_time is None
        else decode_instant(guard.author_time, join(path, "authorTime")),
        properties={name: tuple(values) for name, values in properties.items() if values},
    )


def _plural(many: list[str] | None, one: str | None) -> tuple[str, ...]:
    if many is not None:
        return tuple(many)
    return () if one is None else (one,)


def decode_operation_list(
    data: Any, path: str, *, allow_unknown: bool = False, progress: Progress | None = None
) -> list[Operation]:
    """Decodes a list of at least one operation."""
    if not isinstance(data, list):
        raise fault(path, f"must be a list, not {describe(data)}")
    if not data:
        raise fault(path, "holds no operation")
    return [
        decode_operation(item, f"{path}[{index}]", allow_unknown=allow_unknown)
        for index, item in enumerate(with_progress(data, progress, len(data)))
    ]


def decode_operations(
    data: Any, *, allow_unknown: bool = False
) -> tuple[CommitMeta, list[Operation]]:
    """Decodes the body of a commit: `commitMeta` and `operations`, both required."""
    meta, operations = _operations(data, allow_unknown=allow_unknown, progress=None)
    if meta is None:
        raise fault("commitMeta", "is missing")
    return meta, operations


def _operations(
    data: Any, *, allow_unknown: bool, progress: Progress | None
) -> tuple[CommitMeta | None, list[Operation]]:
    if not isinstance(data, dict):
        raise fault("", f"must be an object, not {describe(data)}")
    if data.get("operations") is None:
        raise fault("operations", "is missing")
    meta = data.get("commitMeta")
    return (
        None if meta is None else decode_commit_meta(meta),
        decode_operation_list(
            data["operations"], "operations", allow_unknown=allow_unknown, progress=progress
        ),
    )


# -- bodies of references, merges and transplants --------------------------------------------------


class ReferenceBody(Struct, frozen=True):
    """A reference in a request.

    A detached one has an empty name; `hash` may have relative parts, or be None.
    """

    type: ReferenceType
    name: str
    hash: str | None


class MergeBody(Struct, frozen=True):
    """A merge.

    `meta` is `commitMeta` with `message` as its default, or `message` alone, or None.
    """

    source: str
    source_hash: str | None
    meta: CommitMeta | None = None
    behaviors: tuple[KeyBehavior, ...] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    dry_run: bool = False
    conflict_as_result: bool = False
    per_content: bool = False
    unrelated: bool = False


class TransplantBody(Struct, frozen=True):
    """A transplant; `hashes` are the commits, oldest first, at least one.

    `meta` is an extension: the metadata of the copy of a single commit.
    """

    source: str
    hashes: tuple[str, ...]
    message: str | None = None
    meta: CommitMeta | None = None
    behaviors: tuple[KeyBehavior, ...] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    dry_run: bool = False
    conflict_as_result: bool = False
    per_content: bool = False


def decode_reference(data: Any, path: str = "") -> ReferenceBody:
    """Decodes a reference; a named one needs its name, a detached one its hash."""
    name = object_with_type(data, path, ReferenceType)
    if name not in ReferenceType.__members__:
        raise fault(
            join(path, "type"),
            f"{describe(name)} is not a type of reference ({', '.join(ReferenceType)})",
        )
    guard: Any = check(guard_of(bodies.LooseReference), data, path)
    hash_ = None if guard.hash is None else _well_formed_hash(guard.hash, join(path, "hash"))
    if name == ReferenceType.DETACHED:
        if hash_ is None:
            raise fault(join(path, "hash"), "is missing")
        return ReferenceBody(ReferenceType.DETACHED, "", hash_)
    if guard.name is None:
        raise fault(join(path, "name"), "is missing")
    return ReferenceBody(
        ReferenceType(name), _well_formed_name(guard.name, join(path, "name")), hash_
    )


def decode_merge(data: Any) -> MergeBody:
    """Decodes the body of a merge."""
    guard: Any = check(guard_of(bodies.Merge), data, "")
    return MergeBody(
        source=_well_formed_name(guard.from_ref_name, "fromRefName"),
        source_hash=None
        if guard.from_hash is None
        else _well_formed_hash(guard.from_hash, "fromHash"),
        meta=_merge_meta(guard),
        **_merge_options(guard),
        unrelated=bool(guard.allow_unrelated_histories),
    )


def decode_transplant(data: Any) -> TransplantBody:
    """Decodes the body of a transplant."""
    guard: Any = check(guard_of(bodies.Transplant), data, "")
    return TransplantBody(
        source=_well_formed_name(guard.from_ref_name, "fromRefName"),
        hashes=tuple(
            _well_formed_hash(h, join("hashesToTransplant", i))
            for i, h in enumerate(guard.hashes_to_transplant)
        ),
        message=guard.message,
        meta=None if guard.commit_meta is None else decode_commit_meta(guard.commit_meta),
        **_merge_options(guard),
    )


def _merge_options(guard: Any) -> dict[str, Any]:
    """Decodes the common options of merge and transplant. Some flags have two spellings."""
    return {
        "behaviors": _behaviors(guard),
        "default_behavior": _behavior(guard.default_key_merge_mode, "defaultKeyMergeMode"),
        "dry_run": bool(guard.is_dry_run or guard.dry_run),
        "conflict_as_result": bool(
            guard.is_return_conflict_as_result or guard.return_conflict_as_result
        ),
        "per_content": bool(guard.per_content),
    }


def decode_requested_keys(data: Any) -> list[ContentKey]:
    """Decodes the keys of `{"requestedKeys": [...]}`, at least one; keys may have no elements."""
    guard: Any = check(guard_of(bodies.GetMultipleContentsRequest), data, "")
    return [
        _key(key, join("requestedKeys", index), allow_empty=True)
        for index, key in enumerate(guard.requested_keys)
    ]


def _merge_meta(guard: Any) -> CommitMeta | None:
    if guard.commit_meta is None:
        return None if guard.message is None else CommitMeta(guard.message)
    meta = decode_commit_meta(guard.commit_meta)
    return (
        meta
        if meta.message or guard.message is None
        else structs.replace(meta, message=guard.message)
    )


def _behaviors(guard: Any) -> tuple[KeyBehavior, ...]:
    behaviors: dict[Any, KeyBehavior] = {}
    for index, item in enumerate(guard.key_merge_modes or ()):
        path = join("keyMergeModes", index)
        behavior = _key_behavior(item, path)
        name = (behavior.key, behavior.content_id, behavior.commit)
        if name in behaviors:
            raise fault(path, f"the key {behavior.key} occurs twice")
        behaviors[name] = behavior
    return tuple(behaviors.values())


def _key_behavior(guard: Any, path: str) -> KeyBehavior:
    return KeyBehavior(
        _key(guard.key, join(path, "key")),
        _behavior(guard.merge_behavior, join(path, "mergeBehavior")),
        _content(guard.expected_target_content, join(path, "expectedTargetContent")),
        _content(guard.resolved_content, join(path, "resolvedContent")),
        guard.content_id,
        None if guard.commit is None else _whole_hash(guard.commit, join(path, "commit")),
    )


def _content(data: JsonObject | None, path: str) -> Content | None:
    return None if data is None else decode_content_value(data, path)


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
    guard: Any = check(guard_of(bodies.NamespaceUpdate), data, "")
    return guard.property_updates, frozenset(guard.property_removals)


# -- text ------------------------------------------------------------------------------------------


def decode_content(data: str | bytes, place: str, *, allow_unknown: bool = False) -> Content:
    """Decodes a content from JSON text; `place` names the file in errors."""
    value = parse_json(data, place)
    try:
        return decode_content_value(value, "", allow_unknown=allow_unknown)
    except InvalidInput as error:
        raise fault(place, error.message) from None


def decode_batch(
    data: str | bytes, place: str, *, allow_unknown: bool = False, progress: Progress | None = None
) -> tuple[CommitMeta | None, list[Operation]]:
    """Decodes a batch of operations: `{"commitMeta", "operations"}`, a list, or JSON lines.

    The metadata may be missing. `place` names the file in errors. A fault names the index or the
    line of the operation. Duplicate keys are not checked here.
    """
    text = read_text(data, place)
    value, end = parse_first(text, place)
    try:
        if isinstance(value, dict) and text[end:].strip() and "operations" not in value:
            return None, _decode_lines(text, allow_unknown=allow_unknown, progress=progress)
        if text[end:].strip():
            value = parse_json(text)
        if isinstance(value, list):
            return None, decode_operation_list(
                value, "", allow_unknown=allow_unknown, progress=progress
            )
        if isinstance(value, dict) and "type" in value:
            return None, [decode_operation(value, "", allow_unknown=allow_unknown)]
        return _operations(value, allow_unknown=allow_unknown, progress=progress)
    except InvalidInput as error:
        raise fault(place, error.message) from None


def _decode_lines(text: str, *, allow_unknown: bool, progress: Progress | None) -> list[Operation]:
    found: list[Operation] = []
    lines = text.split("\n")
    for number, line in enumerate(with_progress(lines, progress, len(lines)), 1):
        if not line.strip():
            continue
        try:
            found.append(decode_operation(parse_json(line), "", allow_unknown=allow_unknown))
        except InvalidInput as error:
            # Each line is a text of its own.
            raise fault(
                f"line {number}", error.message.removeprefix("line 1").lstrip(": ")
            ) from None
    return found
