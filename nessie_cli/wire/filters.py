"""CEL filters on listings: the variables that each listing offers, and whether one of its values passes.

`compile_filter(kind, text)` gives a test for the values of a listing. The engine is loaded with the first filter, not before. Variables are typed
messages, so that a misspelt attribute is found when the filter is compiled and not with the first value. Source: reference 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.model import CommitMeta, ContentKey, DiffEntry, Entry, LogEntry, Put, Reference
from nessie_cli.wire.keys import encode_legacy

MAX_LENGTH = 10_000
"""Characters of a filter; a longer one is refused before it reaches the compiler."""
_REMEMBERED = 128
_PACKAGE = "nessie"


class FilterKind(StrEnum):
    """The listings that can be filtered; each offers variables of its own."""

    REFERENCES = "references"
    LOG = "log"
    ENTRIES = "entries"
    DIFF = "diff"


class _Field(StrEnum):
    """How an attribute is typed in the engine. NULLABLE_INT may be null, ANY may be anything."""

    TEXT = "text"
    TEXTS = "texts"
    TEXT_MAP = "text map"
    LIST_MAP = "list map"
    TIME = "time"
    NULLABLE_INT = "nullable int"
    ANY = "any"


_KEY_FIELDS = {
    "key": _Field.TEXT,
    "keyElements": _Field.TEXTS,
    "encodedKey": _Field.TEXT,
    "namespace": _Field.TEXT,
    "namespaceElements": _Field.TEXTS,
    "name": _Field.TEXT,
}
_MESSAGES: Mapping[str, Mapping[str, str]] = {
    "Key": _KEY_FIELDS,
    "Entry": {"contentType": _Field.TEXT, **_KEY_FIELDS},
    "Operation": {"type": _Field.TEXT, "content": _Field.ANY, **_KEY_FIELDS},
    "Commit": {
        "hash": _Field.TEXT,
        "committer": _Field.TEXT,
        "author": _Field.TEXT,
        "authors": _Field.TEXTS,
        "signedOffBy": _Field.TEXT,
        "allSignedOffBy": _Field.TEXTS,
        "message": _Field.TEXT,
        "commitTime": _Field.TIME,
        "authorTime": _Field.TIME,
        "properties": _Field.TEXT_MAP,
        "allProperties": _Field.LIST_MAP,
        "parentCommitHashes": _Field.TEXTS,
    },
    "RefMeta": {
        "numCommitsAhead": _Field.NULLABLE_INT,
        "numCommitsBehind": _Field.NULLABLE_INT,
        "numTotalCommits": _Field.NULLABLE_INT,
        "commonAncestorHash": _Field.TEXT,
        "commitMetaOfHEAD": "Commit",
    },
    "Reference": {"name": _Field.TEXT, "hash": _Field.TEXT, "metadata": "RefMeta"},
}
"""The typed values: attribute -> its type, or the name of another message."""


def compile_filter(kind: FilterKind, text: str) -> Callable[[Any], bool]:
    """The test of a filter for values of a listing (`Reference`, `LogEntry`, `Entry`, `DiffEntry`).

    Raises `InvalidInput` for a text that does not compile, and, from the test, for one that fails on a value or answers no truth value.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"filter: has {len(text)} characters, {MAX_LENGTH} are allowed")
    expression = _compiled(kind, text)
    bind = _BINDINGS[kind]

    def test(value: Any) -> bool:
        try:
            found = expression.eval(data=bind(value))
        except RuntimeError as error:
            raise InvalidInput(f"filter: {_reason(error)}") from None
        answer = found.value()
        if not isinstance(answer, bool):
            raise InvalidInput(_no_truth(text, found))
        return answer

    return test


def _no_truth(text: str, found: Any) -> str:
    answer, cel = str(found.value()), _cel()
    if found.type() == cel.Type.ERROR:
        return f"filter: {text!r} fails on a value: {answer.partition(': ')[2] or answer}"
    return f"filter: {text!r} is neither true nor false for a value, but of type {str(found.type()).lower()}"


@lru_cache(_REMEMBERED)
def _compiled(kind: FilterKind, text: str) -> Any:
    try:
        return _environment(kind).compile(text)
    except RuntimeError as error:
        raise InvalidInput(f"filter: {_reason(error)}") from None


def _reason(error: RuntimeError) -> str:
    """The engine's message, its first line, without the name of its status."""
    lines = str(error).splitlines() or ["cannot be evaluated"]
    return lines[0].removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: ").removesuffix(" [INVALID_ARGUMENT]")


# -- the engine -----------------------------------------------------------------------------------------------------------------------


@cache
def _cel() -> Any:
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError as error:
        raise _engine_missing() from error
    return cel


def _engine_missing() -> NessieError:
    return InvalidInput("filters need the CEL engine, which is not installed: pip install 'nessie-cli[filters]'")


@cache
def _environment(kind: FilterKind) -> Any:
    cel = _cel()
    _pool()
    types = {"text": cel.Type.STRING, "operations": cel.Type.List(cel.Type(f"{_PACKAGE}.Operation"))}
    variables = {name: types.get(what) or cel.Type(f"{_PACKAGE}.{what}") for name, what in _VARIABLES[kind].items()}
    return cel.NewEnv(descriptor_pool=_pool(), variables=variables)


_VARIABLES: Mapping[FilterKind, Mapping[str, str]] = {
    FilterKind.REFERENCES: {"ref": "Reference", "refType": "text", "refMeta": "RefMeta", "commit": "Commit"},
    FilterKind.LOG: {"commit": "Commit", "operations": "operations"},
    FilterKind.ENTRIES: {"entry": "Entry"},
    FilterKind.DIFF: {"key": "Key"},
}


@cache
def _pool() -> Any:
    """The descriptor pool that knows the messages; the well-known types of the engine's standard library are in it already."""
    try:
        from google.protobuf import (  # type: ignore[import-untyped]
            descriptor_pb2,
            descriptor_pool,
            struct_pb2,
            timestamp_pb2,
            wrappers_pb2,
        )
    except ImportError as error:
        raise _engine_missing() from error
    needed = [module.DESCRIPTOR.name for module in (struct_pb2, timestamp_pb2, wrappers_pb2)]
    file = descriptor_pb2.FileDescriptorProto(name="nessie/filters.proto", package=_PACKAGE, syntax="proto2", dependency=needed)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (attribute, kind) in enumerate(fields.items(), 1):
            _add_field(message, number, attribute, kind)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(message: Any, number: int, name: str, kind: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto  # type: ignore[import-untyped]

    single, many = Proto.LABEL_OPTIONAL, Proto.LABEL_REPEATED
    if kind in (_Field.TEXT, _Field.TEXTS):
        message.field.add(name=name, number=number, label=single if kind == _Field.TEXT else many, type=Proto.TYPE_STRING)
    elif kind in (_Field.TEXT_MAP, _Field.LIST_MAP):
        entry = name[0].upper() + name[1:] + "Entry"
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        nested.field.add(name="key", number=1, label=single, type=Proto.TYPE_STRING)
        if kind == _Field.TEXT_MAP:
            nested.field.add(name="value", number=2, label=single, type=Proto.TYPE_STRING)
        else:
            nested.field.add(name="value", number=2, label=single, type=Proto.TYPE_MESSAGE, type_name=".google.protobuf.ListValue")
        message.field.add(name=name, number=number, label=many, type=Proto.TYPE_MESSAGE, type_name=f".{_PACKAGE}.{message.name}.{entry}")
    else:
        message.field.add(name=name, number=number, label=single, type=Proto.TYPE_MESSAGE, type_name=_WELL_KNOWN.get(kind, f".{_PACKAGE}.{kind}"))


_WELL_KNOWN: Mapping[str, str] = {
    _Field.TIME: ".google.protobuf.Timestamp",
    _Field.NULLABLE_INT: ".google.protobuf.Int64Value",
    _Field.ANY: ".google.protobuf.Value",
}


@cache
def _message(name: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


# -- values -----------------------------------------------------------------------------------------------------------------------------


def _key_attributes(key: ContentKey) -> dict[str, Any]:
    elements = list(key.elements)
    parent = ContentKey(key.elements[:-1])
    return {
        "key": key.plain,
        "keyElements": elements,
        "encodedKey": encode_legacy(key),
        "namespace": encode_legacy(parent),
        "namespaceElements": elements[:-1],
        "name": elements[-1] if elements else "",
    }


def _bind_entry(entry: Entry) -> dict[str, Any]:
    return {"entry": _message("Entry")(contentType=entry.type, **_key_attributes(entry.key))}


def _bind_diff(entry: DiffEntry) -> dict[str, Any]:
    return {"key": _message("Key")(**_key_attributes(entry.key))}


def _commit(meta: CommitMeta) -> Any:
    found = _message("Commit")(
        hash=meta.hash or "",
        committer=meta.committer or "",
        author=meta.author,
        authors=list(meta.authors),
        signedOffBy=meta.signed_off_by[0] if meta.signed_off_by else "",
        allSignedOffBy=list(meta.signed_off_by),
        message=meta.message,
        properties={name: values[0] for name, values in meta.properties.items() if values},
        parentCommitHashes=list(meta.parents),
    )
    for name, values in meta.properties.items():
        found.allProperties[name].extend(values)
    for attribute, when in (("commitTime", meta.commit_time), ("authorTime", meta.author_time)):
        if when is not None:
            getattr(found, attribute).FromDatetime(when)
    return found


_NO_COMMIT = CommitMeta("")


def _bind_log(entry: LogEntry) -> dict[str, Any]:
    return {"commit": _commit(entry.meta), "operations": [_operation(operation) for operation in entry.operations or ()]}


def _operation(operation: Any) -> Any:
    is_put = isinstance(operation, Put)
    found = _message("Operation")(type="PUT" if is_put else "DELETE", **_key_attributes(operation.key))
    if is_put:
        found.content.struct_value.update({"type": operation.content.type_name, "id": operation.content.id or ""})
    else:
        found.content.null_value = 0
    return found


def _bind_reference(reference: Reference) -> dict[str, Any]:
    known = reference.metadata
    metadata = _message("RefMeta")(commonAncestorHash=(known and known.common_ancestor) or "")
    commit = _commit((known and known.head) or _NO_COMMIT)
    if known is not None:
        counts = {"numCommitsAhead": known.ahead, "numCommitsBehind": known.behind, "numTotalCommits": known.total}
        for name, count in counts.items():
            if count is not None:
                getattr(metadata, name).value = count
        metadata.commitMetaOfHEAD.CopyFrom(commit)
    described = _message("Reference")(name=reference.name, hash=reference.hash, metadata=metadata)
    return {"ref": described, "refType": reference.type.value, "refMeta": metadata, "commit": commit}


_BINDINGS: Mapping[FilterKind, Callable[[Any], dict[str, Any]]] = {
    FilterKind.REFERENCES: _bind_reference,
    FilterKind.LOG: _bind_log,
    FilterKind.ENTRIES: _bind_entry,
    FilterKind.DIFF: _bind_diff,
}
