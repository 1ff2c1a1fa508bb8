"""Decodes the answers of any server that speaks REST v2 to values of the model.

Unknown attributes are ignored, attributes that are not necessary may be missing, a content of an
unknown type is kept unchanged, and an unknown conflict type becomes UNKNOWN. A fault means that the
server's answer is invalid, never that the user made a mistake.

msgspec checks the types, because it is loaded anyway: importing pydantic would take a third of the
time of a command that asks a server.
"""

# ruff: noqa: N815 (attributes of JSON)

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from msgspec import Struct, defstruct, structs

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    ContentNotFound,
    InvalidInput,
    NessieError,
    NotAllowed,
    NotFound,
    ReferenceConflict,
    ReferenceMoved,
    ReferenceNotFound,
    StoreUnavailable,
)
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    ContentPlace,
    Delete,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeOption,
    Operation,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    ReflogType,
    Rename,
)
from nessie_cli.wire import commits, contents, documents, references, rest, shapes
from nessie_cli.wire.json_text import join
from nessie_cli.wire.shape import (
    Attribute,
    alternatives,
    attributes,
    is_shape,
    of,
    plain,
    without_null,
)
from nessie_cli.wire.validation import checked
from nessie_cli.wire.values import content_of, decode_instant, key_of

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Represents an instant that the server did not send."""


class MergeAnswer(NamedTuple):
    """A server's answer to a merge or transplant; its details have no contents."""

    resultant_hash: str | None
    common_ancestor: str | None
    target_branch: str
    effective_target_hash: str
    applied: bool
    successful: bool
    details: tuple[MergeDetail, ...]
    skipped: tuple[str, ...] = ()


_INVALID = (InvalidInput, LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""The errors of a decoder if an answer has another structure than expected."""


def understood(decode: Callable[[], T], what: str) -> T:
    """Returns the result of `decode`. A fault in it is the server's: a `StoreUnavailable`."""
    try:
        return decode()
    except _INVALID as fault:
        raise StoreUnavailable(f"the server's answer is invalid ({what}): {fault}") from None


# -- derived decoding ------------------------------------------------------------------------------


def _fields(shape: Any, data: Any, path: str, *needed: str) -> dict[str, Any]:
    """Returns the fields of a value by name, from its JSON.

    Only the attributes `needed` are required.
    """
    found = structs.asdict(checked(struct_of(shape, *needed), data, path))
    for name, field, decode in _decoded(shape):
        if found[field] is not None:
            found[field] = decode(found[field], join(path, name))
    return found


@cache
def struct_of(shape: Any, *needed: str) -> type[Struct]:
    """Returns the struct of a shape in an answer; other attributes than `needed` may be missing.

    Shapes within it remain JSON.
    """
    found = attributes(shape)
    # Required attributes have no default, so they come first.
    fields = sorted((_field(one, needed=one.name in needed) for one in found), key=len)
    return defstruct(shape.__name__, fields, rename={one.field: one.name for one in found})


_EMPTY: Mapping[Any, Any] = {str: "", bool: False, int: 0}


def _field(one: Attribute, *, needed: bool) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Returns name, type and default of an attribute."""
    kind, nullable = without_null(one.type)
    checked = _checked_type(kind)
    empty = None if nullable or one.optional else _EMPTY.get(checked)
    if nullable or (empty is None and not needed):
        checked = checked | None
    return (one.field, checked) if needed else (one.field, checked, empty)


def _checked_type(kind: Any) -> Any:
    """Returns the type that msgspec checks: for a shape only that it is an object."""
    if get_origin(kind) is list:
        return tuple[_checked_type(get_args(kind)[0]), ...]  # type: ignore[misc]
    if get_origin(kind) is dict:
        return dict[str, _checked_type(get_args(kind)[1])]  # type: ignore[misc]
    if alternatives(kind) or is_shape(kind):
        return dict[str, Any]
    return str if get_origin(kind) is Literal else Any if kind is None else plain(kind)


@cache
def _decoded(shape: Any) -> list[tuple[str, str, Callable[[Any, str], Any]]]:
    """Returns decoders of the attributes of a shape whose values are not plain JSON."""
    found = [(one.name, one.field, _decoder(one.type)) for one in attributes(shape)]
    return [(name, field, decode) for name, field, decode in found if decode is not None]


def _decoder(kind: Any) -> Callable[[Any, str], Any] | None:
    """Returns the function that decodes values of a type, or None for plain JSON."""
    kind, _ = without_null(kind)
    if kind in _DECODERS:
        return _DECODERS[kind]
    item = _decoder(get_args(kind)[0]) if get_origin(kind) is list else None
    return (
        None if item is None else lambda values, path: tuple(item(value, path) for value in values)
    )


# Other servers may send null for a parent and for the type of a conflict. None sends null for the
# hash that a merge started from.


class _AnyLogEntry(commits.LogEntry):
    parent_commit_hash: str | None = None  # type: ignore[assignment]


class _AnyConflict(documents.ConflictOfOurs):
    conflictType: shapes.ConflictKind | None = of("type")  # type: ignore[assignment]


class _AnyMerge(shapes.BareMerge):
    effectiveTargetHash: shapes.Hash
    details: list[documents.MergeDetailOfOurs]  # type: ignore[assignment]
    skippedCommits: list[shapes.Hash] | None = of("skipped")


def decode_meta(data: Any, path: str = "commitMeta") -> CommitMeta:
    """Decodes commit metadata, with the attributes that the server sets."""
    return _commit_meta(checked(commits.CommitMeta, data, path), path)


def _commit_meta(meta: commits.CommitMeta, path: str) -> CommitMeta:
    author_time, commit_time = (
        None if text is None else decode_instant(text, join(path, name))
        for name, text in (("authorTime", meta.author_time), ("commitTime", meta.commit_time))
    )
    return CommitMeta(
        message=meta.message,
        authors=tuple(meta.authors),
        signed_off_by=tuple(meta.all_signed_off_by),
        author_time=author_time,
        properties={name: tuple(values) for name, values in meta.all_properties.items()},
        committer=meta.committer,
        commit_time=commit_time,
        hash=meta.hash,
        parents=tuple(meta.parent_commit_hashes),
    )


def decode_reference(data: Any, path: str = "reference") -> Reference:
    """Decodes a branch, tag or detached commit."""
    reference = checked(references.NamedReference, data, path)
    found = reference.metadata
    head = None if found is None else found.commit_meta_of_head
    metadata = (
        None
        if found is None
        else ReferenceMetadata(
            None
            if head is None
            else _commit_meta(head, join(path, "metadata", "commitMetaOfHEAD")),
            found.num_total_commits,
            found.num_commits_ahead,
            found.num_commits_behind,
            found.common_ancestor_hash,
        )
    )
    return Reference(ReferenceType(reference.type), reference.name, reference.hash, metadata)


def decode_key(data: Any, path: str = "key") -> ContentKey:
    """Decodes a content key."""
    return key_of(checked(contents.Key, data, path), path, allow_empty=True)


def decode_content(data: Any, path: str = "content") -> Content:
    """Decodes a content, including one of an unknown type."""
    return content_of(data, path, allow_unknown=True)


def decode_log_entry(data: Any) -> LogEntry:
    """Decodes a commit; the height is 0 if the server does not send it."""
    entry = checked(_AnyLogEntry, data, "logEntries")
    meta = _commit_meta(entry.commit_meta, "logEntries.commitMeta")
    if not meta.parents and entry.parent_commit_hash:
        meta = structs.replace(meta, parents=(entry.parent_commit_hash,))
    operations = None if entry.operations is None else tuple(map(_operation, entry.operations))
    return LogEntry(meta, entry.height or 0, operations)


def _operation(operation: commits.LoggedPut | commits.LoggedDelete) -> Operation:
    key = key_of(operation.key, "key", allow_empty=True)
    if isinstance(operation, commits.LoggedDelete):
        return Delete(key)
    return Put(key, decode_content(operation.content))


def decode_page(data: Any) -> str | None:
    """Returns the token of the next page, or None on the last one."""
    found = _fields(rest.BarePage, data, "")
    return found["token"] if found["has_more"] else None


def decode_conflict(data: Any) -> Conflict:
    """Decodes a conflict. Renames are present only between our own servers and clients."""
    found = _fields(_AnyConflict, data, "conflict")
    name = (found["type"] or "").upper()
    return Conflict(
        type=ConflictType(name) if name in ConflictType.__members__ else ConflictType.UNKNOWN,
        key=found["key"],
        message=found["message"],
        source_rename=found["source_rename"],
        target_rename=found["target_rename"],
        content_id=found["content_id"],
        base_key=found["base_key"],
        theirs_key=found["theirs_key"],
        is_ambiguous=bool(found["is_ambiguous"]),
        commit=found["commit"],
        options=found["options"] or (),
    )


def _decode_rename(data: Any, path: str) -> Rename:
    return Rename(**_fields(documents.Rename, data, path, "from", "to"))


def _decode_option(data: Any, path: str) -> MergeOption:
    fields = _fields(documents.MergeOption, data, path, "behavior")
    return MergeOption(**fields | {"behavior": MergeBehavior(fields["behavior"])})


def _decode_key_rename(data: Any, path: str) -> tuple[ContentKey, ContentKey]:
    found = _fields(documents.KeyRename, data, path, "from", "to")
    return found["old"], found["new"]


def decode_merge(data: Any) -> MergeAnswer:
    """Decodes the answer to a merge or transplant."""
    found = _fields(_AnyMerge, data, "", "targetBranch", "effectiveTargetHash")
    del found["expected_hash"]
    empty = {name: found[name] or () for name in ("details", "skipped")}
    return MergeAnswer(**found | empty)


def _decode_merge_detail(data: Any, path: str) -> MergeDetail:
    fields = _fields(documents.MergeDetailOfOurs, data, path, "key")
    fields["behavior"] = MergeBehavior(fields["behavior"] or "NORMAL")
    fields["is_resolved"] = bool(fields["is_resolved"])
    return MergeDetail(**fields)


def _decode_place(data: Any, path: str) -> ContentPlace:
    return ContentPlace(**_fields(documents.ContentPlace, data, path, "hash", "key"))


_DECODERS: Mapping[Any, Callable[[Any, str], Any]] = {
    shapes.Instant: decode_instant,
    contents.Key: lambda data, _: decode_key(data),
    shapes.Content: lambda data, _: decode_content(data),
    commits.CommitMeta: decode_meta,
    shapes.BareConflict: lambda data, _: decode_conflict(data),
    documents.MergeDetailOfOurs: _decode_merge_detail,
    documents.ContentPlace: _decode_place,
    documents.KeyRename: _decode_key_rename,
    documents.MergeOption: _decode_option,
    documents.Rename: _decode_rename,
}


# -- former hashes of references -------------------------------------------------------------------


def decode_recent_changes(data: Any) -> list[ReflogEntry]:
    """Decodes the former hashes of a reference, newest first.

    The answer does not contain who moved the reference and how, only who made the commits.
    """
    found = _fields(rest.ReferenceHistoryResponse, data, "", "reference")
    reference = decode_reference(found["reference"])
    states = [
        _fields(rest.ReferenceState, state, "previous", "commitHash")
        for state in (found["current"], *(found["previous"] or ()))
        if state is not None
    ]
    entries = []
    for index, state in enumerate(states):
        meta = state["meta"]
        entries.append(
            ReflogEntry(
                number=len(states) - index,
                reference=reference.name,
                type=ReflogType(reference.type),
                before=states[index + 1]["commit_hash"] if index + 1 < len(states) else None,
                after=state["commit_hash"],
                time=(meta.commit_time if meta else None) or EPOCH,
                who=(meta.committer if meta else None) or "",
                operation="",
                message=meta.subject if meta else "",
                request_id="",
            )
        )
    return entries


def decode_reflog_entry(data: Any) -> ReflogEntry:
    """Decodes an entry of the reflog, as our own servers send it."""
    found = _fields(
        documents.ReflogEntry,
        data,
        "reflog",
        *(one.name for one in attributes(documents.ReflogEntry) if not one.optional),
    )
    return ReflogEntry(**found | {"type": ReflogType(found["type"])})


# -- errors ----------------------------------------------------------------------------------------


def decode_error(status: int, body: Any, what: str) -> NessieError:
    """Returns the error of an answer outside of 200 to 299 to the request for `what`.

    The status decides if the answer is not a Nessie error.
    """
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        return _by_status(status, f"{what}: the server answered {status}")
    message = body["message"].partition("\n")[0]
    details = body.get("errorDetails")
    details = details if isinstance(details, dict) else {}
    if body.get("errorCode") == "REFERENCE_CONFLICT":
        return _conflict(message, details)
    if body.get("errorCode") == "CONTENT_NOT_FOUND":
        return ContentNotFound(message, _key(details) or message)
    if body.get("errorCode") == "REFERENCE_NOT_FOUND":
        return (
            ReferenceNotFound(message, _quoted(message))
            if message.startswith("Named reference")
            else CommitNotFound(message, _quoted(message))
        )
    if body.get("errorCode") == "REFERENCE_ALREADY_EXISTS":
        return AlreadyExists(message, _quoted(message))
    return _by_status(status, message)


def _conflict(message: str, details: Mapping[str, Any]) -> ReferenceConflict:
    found = [
        decode_conflict(item) for item in details.get("conflicts") or () if isinstance(item, dict)
    ]
    if found and all(conflict.type is ConflictType.UNEXPECTED_HASH for conflict in found):
        return ReferenceMoved(message, found)
    return ReferenceConflict(message, found)


def _key(details: Mapping[str, Any]) -> ContentKey | None:
    key = details.get("contentKey")
    return decode_key(key) if isinstance(key, dict) else None


def _quoted(message: str) -> str:
    """Returns the text in the first single quotes: the name that a message is about."""
    parts = message.split("'")
    return parts[1] if len(parts) > 2 else ""  # noqa: PLR2004 - before, between and behind the quotes


_KINDS: Mapping[int, Callable[[str], NessieError]] = {
    400: InvalidInput,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: ReferenceConflict,
    413: InvalidInput,
    415: InvalidInput,
}


def _by_status(status: int, message: str) -> NessieError:
    return _KINDS.get(status, StoreUnavailable)(message)
