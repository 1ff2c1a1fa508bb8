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
from typing import Any, Literal, get_args, get_origin

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
)
from nessie_cli.wire import shapes
from nessie_cli.wire.commits import CommitMeta, CommitMetaV1, LoggedDelete, LoggedPut, PutV1
from nessie_cli.wire.contents import CONTENTS, Key
from nessie_cli.wire.shape import (
    Attribute,
    alternatives,
    attributes,
    constant,
    is_shape,
    without_null,
)

Json = dict[str, Any]


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
    names: dict[str, Any] = {}
    known = attributes(shape)
    first = next((index for index, one in enumerate(known) if one.optional), len(known))
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
    body: Json = to_builtins(
        CommitMeta(
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
    )
    return body


def _encode_commit_meta_v1(meta: model.CommitMeta) -> Json:
    body: Json = to_builtins(
        CommitMetaV1(
            properties={name: values[0] for name, values in meta.properties.items() if values},
            hash=meta.hash,
            committer=meta.committer,
            message=meta.message,
            commit_time=instant(meta.commit_time),
            author_time=instant(meta.author_time),
            author=meta.author,
            signed_off_by=meta.signed_off_by[0] if meta.signed_off_by else None,
        )
    )
    return body


def _encode_logged(operation: Operation) -> Json:
    key = Key(list(operation.key.elements))
    body: Json = to_builtins(
        LoggedPut(key, _content(operation.content))
        if isinstance(operation, Put)
        else LoggedDelete(key)
    )
    return body


def _encode_logged_v1(operation: Operation) -> Json:
    key = Key(list(operation.key.elements))
    body: Json = to_builtins(
        PutV1(key, _content(operation.content)) if isinstance(operation, Put) else LoggedDelete(key)
    )
    return body


def encode_reference(reference: Reference) -> Json:
    """Encodes a reference; a detached one has no `name`, unknown `metadata` is left out."""
    return encode(shapes.Reference, reference)


def encode_log_entry(entry: LogEntry) -> Json:
    """Encodes a commit of a log; `operations` is null if it has none or they were not requested."""
    return encode(shapes.BareLogEntry, entry)


def encode_entry(entry: Entry) -> Json:
    """Encodes a key of a commit's state; the attribute of the key is `name`."""
    return encode(shapes.BareEntry, entry)


def encode_diff_entry(entry: DiffEntry) -> Json:
    """Encodes a key whose content differs."""
    return encode(shapes.BareDiffEntry, entry)


def encode_conflict(conflict: Conflict) -> Json:
    """Encodes a conflict: type, key (null if the conflict is about a reference) and message."""
    return encode(shapes.BareConflict, conflict)


def encode_merge_detail(detail: MergeDetail) -> Json:
    """Encodes a key of a merge; `conflict` is left out if there is none."""
    return encode(shapes.BareMergeDetail, detail)


ENCODERS: dict[Any, Callable[[Any], Any]] = {
    shapes.Instant: instant,
    shapes.ConflictKind: str,
    Key: encode_key,
    shapes.Content: encode_content,
    CommitMeta: encode_commit_meta,
    CommitMetaV1: _encode_commit_meta_v1,
    LoggedPut | LoggedDelete: _encode_logged,
    PutV1 | LoggedDelete: _encode_logged_v1,
}
"""The types with an encoder of their own."""


# -- answers ---------------------------------------------------------------------------------------


def assembled(shape: Any, **values: Any) -> Json:
    """Returns an object of several values, each under the name of its field."""
    return encode(shape, SimpleNamespace(**values))


def encode_page(
    name: str, items: Iterable[Json | Raw], token: str | None = None, **references: Reference
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
    return encode(shapes.BareCommit, result)


def encode_merge_result(
    result: MergeResult, detail: Callable[[MergeDetail], Json] = encode_merge_detail
) -> Json:
    """Encodes the result of a merge or transplant; `detail` encodes each key."""
    return encode(shapes.MergeOutcome, result) | {
        "details": [detail(one) for one in result.details]
    }


# -- errors ----------------------------------------------------------------------------------------


def encode_error(error: NessieError, *, details: bool = True) -> Json:
    """Encodes the body of an error answer.

    `details=False` is for clients that do not announce specification 2.
    """
    body = encode_error_line(error)
    found = error_details(error) if details else None
    if found:
        body["errorDetails"] = found
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
        {"type": "REFERENCE_CONFLICTS", "conflicts": [encode_conflict(c) for c in conflicts]}
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
