"""CEL filters on listings: the variables of each listing, and tests of its values.

`compile_filter(kind, text)` returns a test for the values of a listing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    DiffEntry,
    Entry,
    LogEntry,
    Put,
    Reference,
    ReferenceMetadata,
)
from nessie_cli.wire.filter_cost import MOST_STEPS, OPERATION, Size, most_steps
from nessie_cli.wire.filter_engine import (
    BARE,
    CHECKED,
    EVALUATED,
    FilterKind,
    compiled,
    engine,
    message,
    reason,
)
from nessie_cli.wire.keys import encode_legacy

__all__ = ["FilterKind", "compile_filter"]

MAX_LENGTH = 10_000
"""The most characters of a filter; the compiler never sees a longer one."""
MOST_BRACKETS, MOST_FOREIGN = 1_000, 500
"""The most opening brackets of a filter, and characters outside of texts that are not ASCII.

The compiler holds the interpreter. It compares the types of empty lists with each other, and
describes each foreign character.
"""
_TEXT = re.compile(r""""(?:\\.|[^"\\])*(?:"|\Z)|'(?:\\.|[^'\\])*(?:'|\Z)""", re.DOTALL)
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_REMEMBERED = 128
_OF_CONTENT, _ELEMENT_BYTES = 2, 4
"""The attributes of an operation's content, and the least bytes of an element in a message."""
_OPERATIONS = "operations"
_STEPS_PER_OPERATION, _STEPS_PER_ELEMENT, _CHARACTERS_PER_STEP = 100, 10, 3
"""The steps in which the engine converts an operation and its key. They are measured."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def compile_filter(kind: FilterKind, text: str) -> Callable[[Any], bool]:
    """Returns the test of a filter for values (`Reference`, `LogEntry`, `Entry`, `DiffEntry`).

    Raises `InvalidInput` for a text that does not compile; the test raises it if it fails on a
    value or returns no truth value.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"filter has {len(text)} characters, {MAX_LENGTH} are allowed")
    if (brackets := sum(map(text.count, "([{"))) > MOST_BRACKETS:
        raise InvalidInput(f"filter has {brackets} brackets, {MOST_BRACKETS} are allowed")
    if not text.isascii() and len(_FOREIGN.findall(_TEXT.sub("", text))) > MOST_FOREIGN:
        raise InvalidInput("filter: has many characters that are not ASCII and not in quotes")
    compiled(kind, CHECKED, text)
    bind = _BINDINGS[kind]
    if kind is FilterKind.LOG and _OPERATIONS not in text:
        bind = _bind_commit

    def test(value: Any) -> bool:
        package = BARE if isinstance(value, Reference) and value.metadata is None else EVALUATED
        try:
            values = bind(value)
            _check_steps(kind, text, values)
            result = compiled(kind, package, text).eval(data=values)
        except RuntimeError as error:
            raise InvalidInput(f"filter: {reason(error)}") from None
        answer = result.value()
        if not isinstance(answer, bool):
            raise InvalidInput(_no_truth(text, result))
        return answer

    return test


def _check_steps(kind: FilterKind, text: str, values: Mapping[str, Any]) -> None:
    """Refuses an evaluation that could take long, before it begins."""
    sizes = {name: _size(value) for name, value in values.items()}
    operations = values.get(_OPERATIONS, ())
    sizes[OPERATION] = Size(
        max((len(operation.keyElements.values) for operation in operations), default=0)
        + _OF_CONTENT,
        max(map(_bytes, operations), default=0),
    )
    # Rounded, so that the records of a listing share a few bounds.
    rounded = tuple((name, size.rounded()) for name, size in sizes.items())
    if _steps(kind, text, rounded) > MOST_STEPS:
        raise InvalidInput(
            "filter: could take too long for a record", hint="use fewer and smaller loops and texts"
        )


@lru_cache(_REMEMBERED)
def _steps(kind: FilterKind, text: str, sizes: tuple[tuple[str, Size], ...]) -> int:
    return most_steps(compiled(kind, CHECKED, text), dict(sizes))


def _size(value: Any) -> Size:
    if isinstance(value, list):
        return Size(len(value), sum(map(_bytes, value)))
    bytes_ = _bytes(value)
    # No element of a list or map takes less.
    return Size(bytes_ // _ELEMENT_BYTES, bytes_)


def _bytes(value: Any) -> int:
    return len(value) if isinstance(value, str) else value.ByteSize()


def _no_truth(text: str, result: Any) -> str:
    answer, cel = str(result.value()), engine()
    if result.type() == cel.Type.ERROR:
        return f"filter: {text!r} fails on a value: {answer.partition(': ')[2] or answer}"
    type_ = str(result.type()).lower()
    return f"filter: {text!r} is neither true nor false for a value, but of type {type_}"


Json = dict[str, Any]


def _text(value: str | None) -> Json | None:
    return None if value is None else {"value": value}


@lru_cache(_REMEMBERED)
def _texts(values: tuple[str, ...]) -> Any:
    """Returns a cached list: the same authors and namespaces occur again and again."""
    from google.protobuf.struct_pb2 import ListValue  # type: ignore[import-untyped]

    list_value = ListValue()
    list_value.extend(values)
    return list_value


def _map(values: Json) -> Any:
    from google.protobuf.struct_pb2 import Struct

    struct = Struct()
    struct.update(values)
    return struct


def _time(when: datetime | None) -> Json | None:
    if when is None:
        return None
    seconds, micros = divmod((when - _EPOCH) // _MICROSECOND, 10**6)
    return {"seconds": seconds, "nanos": micros * 1000}


def _number(value: int | None) -> Json | None:
    return None if value is None else {"value": value}


def _key_attributes(key: ContentKey) -> Json:
    elements = key.elements
    return {
        "key": _text(key.plain),
        "keyElements": _texts(elements),
        "encodedKey": _text(encode_legacy(key)),
        "namespace": _text(encode_legacy(ContentKey(elements[:-1]))),
        "namespaceElements": _texts(elements[:-1]),
        "name": _text(elements[-1] if elements else ""),
    }


def _bind_entry(entry: Entry) -> dict[str, Any]:
    return {"entry": message("Entry")(contentType=_text(entry.type), **_key_attributes(entry.key))}


def _bind_diff(entry: DiffEntry) -> dict[str, Any]:
    return {"key": message("Key")(**_key_attributes(entry.key))}


def _commit(meta: CommitMeta, package: str = EVALUATED) -> Any:
    return message("Commit", package)(
        hash=_text(meta.hash),
        committer=_text(meta.committer),
        author=_text(meta.authors[0] if meta.authors else None),
        authors=_texts(meta.authors),
        signedOffBy=_text(meta.signed_off_by[0] if meta.signed_off_by else None),
        allSignedOffBy=_texts(meta.signed_off_by),
        message=_text(meta.message),
        commitTime=_time(meta.commit_time),
        authorTime=_time(meta.author_time),
        properties=_map({name: values[0] for name, values in meta.properties.items() if values}),
        allProperties=_map({name: list(values) for name, values in meta.properties.items()}),
        parentCommitHashes=_texts(meta.parents),
    )


def _bind_commit(entry: LogEntry) -> dict[str, Any]:
    return {"commit": _commit(entry.meta)}


def _bind_log(entry: LogEntry) -> dict[str, Any]:
    operations = entry.operations or ()
    # The engine converts all operations at once, whatever the filter reads of them.
    if sum(map(_conversion_steps, operations)) > MOST_STEPS:
        raise InvalidInput(
            f"filter: could take too long for the {len(operations):,} operations of a commit",
            hint="use `commit` alone, or a range without this commit",
        )
    return {**_bind_commit(entry), _OPERATIONS: list(map(_operation, operations))}


def _conversion_steps(operation: Any) -> int:
    elements = operation.key.elements
    characters = sum(map(len, elements))
    if isinstance(operation, Put):
        characters += len(operation.content.id or "")
    return (
        _STEPS_PER_OPERATION
        + _STEPS_PER_ELEMENT * len(elements)
        + characters // _CHARACTERS_PER_STEP
    )


def _operation(operation: Any) -> Any:
    is_put = isinstance(operation, Put)
    converted = message("Operation")(
        type=_text("PUT" if is_put else "DELETE"), **_key_attributes(operation.key)
    )
    if is_put:
        converted.content.struct_value.update(
            {"type": operation.content.type_name, "id": operation.content.id}
        )
    return converted


_NO_COMMIT, _NO_METADATA = CommitMeta(""), ReferenceMetadata()


def _bind_reference(reference: Reference) -> dict[str, Any]:
    package = EVALUATED if reference.metadata else BARE
    known_metadata = reference.metadata or _NO_METADATA
    commit = _commit(known_metadata.head or _NO_COMMIT, package)
    metadata = message("RefMeta", package)(
        numCommitsAhead=_number(known_metadata.ahead),
        numCommitsBehind=_number(known_metadata.behind),
        numTotalCommits=_number(known_metadata.total),
        commonAncestorHash=_text(known_metadata.common_ancestor),
        commitMetaOfHEAD=commit,
    )
    described = message("Reference", package)(
        name=_text(reference.name),
        hash=_text(reference.hash),
        metadata=metadata if reference.metadata else None,
    )
    return {
        "ref": described,
        "refType": reference.type.value,
        "refMeta": metadata,
        "commit": commit,
    }


_BINDINGS: Mapping[FilterKind, Callable[[Any], dict[str, Any]]] = {
    FilterKind.REFERENCES: _bind_reference,
    FilterKind.LOG: _bind_log,
    FilterKind.ENTRIES: _bind_entry,
    FilterKind.DIFF: _bind_diff,
}
