"""Encodes values to the JSON of the REST API, as plain dictionaries.

Each function encodes a shape of `shapes`. The encoders are created from the definitions on first
use. The shapes of REST have no added attributes, because its Java clients refuse unknown ones;
`facts` adds the attributes of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, get_args, get_origin

from msgspec import Raw, Struct, to_builtins

from nessie_cli import model
from nessie_cli.errors import ContentNotFound, MergeConflict, NessieError, ReferenceConflict
from nessie_cli.model import (
    CommitResult,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    DiffEntry,
    Entry,
    LogEntry,
    MergeDetail,
    MergeResult,
    Operation,
    Put,
    Reference,
    ReferenceType,
    Tag,
)
from nessie_cli.wire import references, shapes
from nessie_cli.wire.commits import (
    AddedContent,
    BareCommit,
    BareLogEntry,
    CommitMeta,
    CommitMetaV1,
    LogEntryV1,
    LoggedDelete,
    LoggedPut,
    PutV1,
)
from nessie_cli.wire.contents import CONTENTS, Key
from nessie_cli.wire.entries import BareDiffEntry, BareEntry, EntryV1
from nessie_cli.wire.merges import (
    BareConflict,
    BareMerge,
    BareMergeDetail,
    CleanMergeDetail,
    MergeDetailV1,
    MergeOutcome,
    MergeResponseV1,
)
from nessie_cli.wire.references import (
    DetachedReference,
    NamedReference,
    NamedReferenceV1,
    ReferenceMetadata,
    ReferenceMetadataV1,
)
from nessie_cli.wire.shape import (
    Attribute,
    alternatives,
    attributes,
    constant,
    is_described,
    is_shape,
    without_null,
)

Json = dict[str, Any]
P = TypeVar("P", LoggedPut, PutV1)


def instant(when: datetime | None) -> str | None:
    """Returns an ISO instant in UTC ending in `Z`, with no, three or six digits of a fraction."""
    if when is None:
        return None
    # Most are in UTC already, and a page has a hundred of them.
    text = (when if when.tzinfo is UTC else when.astimezone(UTC)).isoformat().removesuffix("+00:00")
    return text.removesuffix("000") + "Z" if when.microsecond else text + "Z"


# -- derived encoders ------------------------------------------------------------------------------


def encode(shape: Any, value: Any) -> Json:
    """Returns the JSON of a value in a shape, or in one of several."""
    return encoder(shape)(value)


@cache
def encoder(shape: Any) -> Callable[[Any], Json]:
    """Returns the function that encodes values in a shape, or in one of several.

    It is compiled from source text, like the methods of dataclasses: a loop over the attributes
    takes 1.3 times as long for a page of a log, and four times as long for the answer to a commit.
    """
    if shape in ENCODERS:
        return ENCODERS[shape]
    if several := alternatives(shape):
        return _chosen(several)
    if not is_described(shape):
        raise TypeError(f"{shape} has no encoder")
    names: dict[str, Any] = {}
    known = attributes(shape)
    first = next(
        (index for index, one in enumerate(known) if one.optional or not one.name), len(known)
    )
    pairs = ", ".join(
        f"{one.name!r}: {_expression(one.type, _source(one, names), names)}"
        for one in known[:first]
    )
    lines = ["def encode(value):", f" body = {{{pairs}}}"]
    for one in known[first:]:
        lines += _statements(one, names)
    exec("\n".join([*lines, " return body"]), names)  # noqa: S102 - the text is made of our own definitions
    return names["encode"]  # type: ignore[no-any-return]


def _chosen(several: Iterable[Any]) -> Callable[[Any], Json]:
    """Returns the function that encodes values in the shape of their type."""
    by_type = {name: encoder(one) for one in several for name in get_args(attributes(one)[0].type)}
    return lambda value: by_type[value.type](value)


def _source(attribute: Attribute, names: dict[str, Any]) -> str:
    """Returns the source text that reads the value of an attribute from `value`."""
    source = attribute.source
    return f"value.{source}" if isinstance(source, str) else f"{_named(source, names)}(value)"


def _statements(attribute: Attribute, names: dict[str, Any]) -> list[str]:
    """Returns the source text that adds an attribute to `body` if it has a value."""
    name, found = attribute.name, _source(attribute, names)
    if not name:
        return [f" body |= {_expression(attribute.type, found, names)}"]
    if not attribute.optional:
        return [f" body[{name!r}] = {_expression(attribute.type, found, names)}"]
    # A list that may be null is left out if it is null, and any other list if it is empty.
    kind, nullable = without_null(attribute.type)
    test = "" if get_origin(kind) in (list, dict) and not nullable else " is not None"
    encoded = _expression(kind, "found", names, late=True)
    return [f" found = {found}", f" if found{test}:", f"  body[{name!r}] = {encoded}"]


def _expression(kind: Any, found: str, names: dict[str, Any], *, late: bool = False) -> str:
    """Returns the source text that encodes a value of a type; `found` is its source text.

    The encoder of the type is created at once, or `late`, for the first value.
    """
    if fixed := constant(kind):
        return repr(fixed[0])
    kind, nullable = without_null(kind)
    if nullable and (encoded := _expression(kind, "one", names)) != "one":
        # A list that may be null is null if it is empty.
        test = "" if get_origin(kind) is list else " is not None"
        return f"({encoded} if (one := {found}){test} else None)"
    if get_origin(kind) is list:
        item = _expression(get_args(kind)[0], "item", names, late=late)
        return f"list({found})" if item == "item" else f"[{item} for item in {found}]"
    if get_origin(kind) is dict:
        item = _expression(get_args(kind)[1], "item", names)
        return f"{{name: {item} for name, item in {found}.items()}}"
    function = _function(kind, late=late)
    return found if function is None else f"{_named(function, names)}({found})"


def _function(kind: Any, *, late: bool) -> Callable[[Any], Any] | None:
    """Returns the function that encodes values of a type, or None for plain JSON."""
    if kind in ENCODERS or alternatives(kind) or is_shape(kind):
        return _late(kind) if late else encoder(kind)
    return str if get_origin(kind) is Literal else None


def _late(shape: Any) -> Callable[[Any], Any]:
    """Returns an encoder of a shape that is created for the first value."""

    def encode_late(value: Any) -> Any:
        return encoder(shape)(value)

    return encode_late


def _named(value: Any, names: dict[str, Any]) -> str:
    """Returns the name of an object in the compiled source text."""
    name = f"_{len(names)}"
    names[name] = value
    return name


# -- parts -----------------------------------------------------------------------------------------


def encode_key(key: ContentKey) -> Json:
    """Encodes a content key."""
    return {"elements": list(key.elements)}


def encode_content(content: Content) -> Json:
    """Encodes a content: `type` and `id` first (`id` null if unknown), then its attributes."""
    body: Json = to_builtins(_content(content))
    return body


def _content(content: Content) -> Struct | Json:
    if content.payload:
        struct: Struct = CONTENTS[content.type].of(content)
        return struct
    return {"type": content.type_name, "id": content.id} | content.attributes()


def _optional_content(content: Content | None) -> Struct | Json | None:
    return None if content is None else _content(content)


def _key(key: ContentKey) -> Key:
    return Key(list(key.elements))


def encode_optional_content(content: Content | None) -> Json | None:
    """Encodes a content or null."""
    return None if content is None else encode_content(content)


def encode_operation(operation: Operation) -> Json:
    """Encodes an operation for a server; `decode_operation` is the inverse."""
    key = encode_key(operation.key)
    if not isinstance(operation, Put):
        return {"type": "DELETE" if isinstance(operation, Delete) else "UNCHANGED", "key": key}
    body = {"type": "PUT", "key": key, "content": encode_content(operation.content)}
    if operation.expected_content is not None:
        body["expectedContent"] = encode_content(operation.expected_content)
    return body


def encode_commit_meta(meta: model.CommitMeta) -> Json:
    """Encodes commit metadata for REST v2.

    Attributes are plural; `allProperties` and `parentCommitHashes` are left out if empty.
    """
    body: Json = to_builtins(_commit_meta(meta))
    return body


def _commit_meta(meta: model.CommitMeta) -> CommitMeta:
    return CommitMeta(
        hash=meta.hash,
        committer=meta.committer,
        authors=list(meta.authors),
        all_signed_off_by=list(meta.signed_off_by),
        message=meta.message,
        commit_time=instant(meta.commit_time),
        author_time=instant(meta.author_time),
        all_properties={name: list(values) for name, values in meta.properties.items()},
        parent_commit_hashes=list(meta.parents),
    )


def _commit_meta_v1(meta: model.CommitMeta) -> CommitMetaV1:
    return CommitMetaV1(
        properties={name: values[0] for name, values in meta.properties.items() if values},
        hash=meta.hash,
        committer=meta.committer,
        message=meta.message,
        commit_time=instant(meta.commit_time),
        author_time=instant(meta.author_time),
        author=meta.author,
        signed_off_by=meta.signed_off_by[0] if meta.signed_off_by else None,
    )


def encode_reference(reference: Reference) -> Json:
    """Encodes a reference; a detached one has no `name`, unknown `metadata` is left out."""
    body: Json = to_builtins(_reference(reference))
    return body


def _reference(reference: Reference) -> NamedReference | DetachedReference:
    return _detached(reference) or NamedReference(
        type=reference.type.value,
        name=reference.name,
        hash=reference.hash,
        metadata=_metadata(reference),
    )


def _encode_tag(tag: Tag) -> Json:
    body: Json = to_builtins(
        references.Tag(
            type=tag.type.value,
            name=tag.name,
            hash=tag.hash,
            metadata=_metadata(tag),
            message=tag.message,
        )
    )
    return body


def encode_reference_v1(reference: Reference) -> Json:
    """Encodes a reference in REST v1."""
    body: Json = to_builtins(
        _detached(reference)
        or NamedReferenceV1(
            reference.type.value, reference.name, reference.hash, _metadata_v1(reference)
        )
    )
    return body


def _metadata_v1(reference: Reference) -> ReferenceMetadataV1 | None:
    metadata = reference.metadata
    if metadata is None:
        return None
    return ReferenceMetadataV1(
        metadata.ahead,
        metadata.behind,
        None if metadata.head is None else _commit_meta_v1(metadata.head),
        metadata.common_ancestor,
        metadata.total,
    )


def _detached(reference: Reference) -> DetachedReference | None:
    is_detached = reference.type is ReferenceType.DETACHED
    return DetachedReference(reference.hash) if is_detached else None


def _metadata(reference: Reference) -> ReferenceMetadata | None:
    metadata = reference.metadata
    if metadata is None:
        return None
    return ReferenceMetadata(
        metadata.ahead,
        metadata.behind,
        None if metadata.head is None else _commit_meta(metadata.head),
        metadata.common_ancestor,
        metadata.total,
    )


def encode_log_entry(entry: LogEntry) -> Json:
    """Encodes a commit of a log; `operations` is null if it has none or they were not requested."""
    body: Json = to_builtins(bare_log_entry(entry))
    return body


def bare_log_entry(entry: LogEntry) -> BareLogEntry:
    """Returns the struct of a commit of a log, which msgspec encodes."""
    return BareLogEntry(
        _commit_meta(entry.meta),
        entry.parent,
        [_logged(operation, LoggedPut) for operation in entry.operations or ()] or None,
    )


def _encode_log_entry_v1(entry: LogEntry) -> Json:
    """Encodes a commit of a log in REST v1."""
    body: Json = to_builtins(
        LogEntryV1(
            _commit_meta_v1(entry.meta),
            entry.parent,
            [_logged(operation, PutV1) for operation in entry.operations or ()] or None,
        )
    )
    return body


def _logged(operation: Operation, put: type[P]) -> P | LoggedDelete:
    key = _key(operation.key)
    if isinstance(operation, Put):
        return put(key, _content(operation.content))
    return LoggedDelete(key)


def encode_entry(entry: Entry) -> Json:
    """Encodes a key of a commit's state; the attribute of the key is `name`."""
    body: Json = to_builtins(bare_entry(entry))
    return body


def bare_entry(entry: Entry) -> BareEntry:
    """Returns the struct of a key of a commit's state, which msgspec encodes."""
    content = _optional_content(entry.content)
    return BareEntry(entry.type, _key(entry.key), entry.content_id, content)


def _encode_entry_v1(entry: Entry) -> Json:
    body: Json = to_builtins(EntryV1(entry.type, _key(entry.key)))
    return body


def encode_diff_entry(entry: DiffEntry) -> Json:
    """Encodes a key whose content differs."""
    body: Json = to_builtins(bare_diff_entry(entry))
    return body


def bare_diff_entry(entry: DiffEntry) -> BareDiffEntry:
    """Returns the struct of a key whose content differs, which msgspec encodes."""
    before, after = _optional_content(entry.before), _optional_content(entry.after)
    return BareDiffEntry(_key(entry.key), before, after)


def encode_conflict(conflict: Conflict) -> Json:
    """Encodes a conflict: type, key (null if the conflict is about a reference) and message."""
    body: Json = to_builtins(_conflict(conflict))
    return body


def _conflict(conflict: Conflict) -> BareConflict:
    key = None if conflict.key is None else _key(conflict.key)
    return BareConflict(conflict.type.value, key, conflict.message)


def encode_merge_detail(detail: MergeDetail) -> Json:
    """Encodes a key of a merge; `conflict` is left out if there is none."""
    conflict = None if detail.conflict is None else _conflict(detail.conflict)
    body: Json = to_builtins(BareMergeDetail(_key(detail.key), detail.behavior.value, conflict))
    return body


ENCODERS: dict[Any, Callable[[Any], Any]] = {
    shapes.Instant: instant,
    Key: encode_key,
    shapes.Content: encode_content,
    shapes.Reference: encode_reference,
    references.Tag: _encode_tag,
    CommitMeta: encode_commit_meta,
    CommitMetaV1: lambda meta: to_builtins(_commit_meta_v1(meta)),
    BareLogEntry: encode_log_entry,
    BareEntry: encode_entry,
    EntryV1: _encode_entry_v1,
    BareDiffEntry: encode_diff_entry,
    BareConflict: encode_conflict,
    BareMergeDetail: encode_merge_detail,
    LogEntryV1: _encode_log_entry_v1,
}
"""The types with an encoder of their own."""


# -- answers ---------------------------------------------------------------------------------------


def assembled(shape: Any, **values: Any) -> Json:
    """Returns an object of several values, each under the name of its field."""
    return encode(shape, SimpleNamespace(**values))


def encode_page(
    name: str,
    items: Iterable[Json | Struct | Raw],
    token: str | None = None,
    **references: Reference,
) -> Json:
    """Encodes a page of a listing: `hasMore`, `token`, the items, and the references it is of.

    `name` is `references`, `logEntries`, `entries` or `diffs`; `references` are
    `effectiveReference` or similar attributes. An item may be JSON text already.
    """
    body: Json = {"hasMore": token is not None, "token": token, name: list(items)}
    return body | {
        attribute: encode_reference(reference) for attribute, reference in references.items()
    }


def encode_single_reference(reference: Reference) -> Json:
    """Encodes the answer of the requests that get, create, assign or delete a reference."""
    return assembled(shapes.SingleReference, reference=reference)


def encode_content_response(content: Content, effective: Reference) -> Json:
    """Encodes a content and the reference it was read from."""
    return assembled(shapes.ContentResponse, content=content, effective_reference=effective)


def encode_commit_result(result: CommitResult) -> Json:
    """Encodes the result of a commit; `addedContents` is null if nothing was created."""
    body: Json = to_builtins(bare_commit(result))
    return body


def bare_commit(result: CommitResult) -> BareCommit:
    """Returns the struct of the result of a commit, which msgspec encodes."""
    added = [AddedContent(_key(key), content_id) for key, content_id in result.added.items()]
    return BareCommit(_reference(result.reference), added or None)


def encode_merge_result(
    result: MergeResult, detail: Callable[[MergeDetail], Json] = encode_merge_detail
) -> Json:
    """Encodes the result of a merge or transplant; `detail` encodes each key."""
    return _encode_outcome(result) | {"details": [detail(one) for one in result.details]}


def _encode_outcome(result: MergeResult) -> Json:
    body: Json = to_builtins(MergeOutcome(**_outcome(result)))
    return body


def _encode_merge_v1(result: MergeResult) -> Json:
    details = [
        MergeDetailV1(
            key=_key(detail.key),
            merge_behavior=detail.behavior.value,
            conflict_type="UNRESOLVABLE" if detail.conflict else "NONE",
        )
        for detail in result.details
    ]
    body: Json = to_builtins(MergeResponseV1(**_outcome(result), details=details))
    return body


def _outcome(result: MergeResult) -> dict[str, Any]:
    """Returns the attributes of the outcome of a merge."""
    return {
        "was_applied": result.applied,
        "was_successful": result.successful,
        "resultant_target_hash": result.resultant_hash,
        "common_ancestor": result.common_ancestor,
        "target_branch": result.target_branch,
        "effective_target_hash": result.effective_target_hash,
        "expected_hash": result.expected_hash,
    }


def _encode_clean_detail(detail: MergeDetail) -> Json:
    body: Json = to_builtins(CleanMergeDetail(_key(detail.key), detail.behavior.value))
    return body


ENCODERS |= {
    BareCommit: encode_commit_result,
    BareMerge: encode_merge_result,
    CleanMergeDetail: _encode_clean_detail,
    MergeOutcome: _encode_outcome,
    MergeResponseV1: _encode_merge_v1,
}


# -- errors ----------------------------------------------------------------------------------------


def encode_error(error: NessieError, *, details: bool = True) -> Json:
    """Encodes the body of an error answer.

    `details=False` is for clients that do not announce specification 2.
    """
    body = encode_error_line(error)
    if details and (shown := error_details(error)):
        body["errorDetails"] = shown
    return body | {"serverStackTrace": None}


def encode_error_line(error: NessieError) -> Json:
    """Status, reason, message and code of an error."""
    return encode(shapes.ErrorLine, error)


def error_details(error: NessieError) -> Json | None:
    """`errorDetails` of an error, or None if it has none."""
    if isinstance(error, ContentNotFound):
        return encode(shapes.KeyDetails, error)
    conflicts = _reported(error)
    return (
        {"type": "REFERENCE_CONFLICTS", "conflicts": to_builtins(list(map(_conflict, conflicts)))}
        if conflicts
        else None
    )


def _reported(error: NessieError) -> list[Conflict]:
    """Returns the conflicts to report. A failed merge lists other keys as KEY_CONFLICT."""
    if isinstance(error, MergeConflict):
        details = error.result.details
        if any(d.conflict for d in details):
            return [
                d.conflict or Conflict(ConflictType.KEY_CONFLICT, d.key, "UNKNOWN") for d in details
            ]
    return list(error.conflicts) if isinstance(error, ReferenceConflict) else []
