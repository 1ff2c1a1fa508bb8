"""The CEL engine of the filters: the typed variables of each listing, and compiled filters.

The engine is loaded with the first filter. Variables are typed messages, so that the compiler finds
a misspelt attribute. Each message exists three times: a filter is checked with plain types, as in
the original server, and evaluated with types that can be null.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError

_REMEMBERED = 128
CHECKED, EVALUATED, BARE = "nessie", "nessie.evaluated", "nessie.bare"
"""The packages of the messages. BARE is for references without metadata and times."""


class FilterKind(StrEnum):
    """The listings that can be filtered; each has its own variables."""

    REFERENCES = "references"
    LOG = "log"
    ENTRIES = "entries"
    DIFF = "diff"


class _Field(StrEnum):
    """The type of an attribute."""

    TEXT = "text"
    TEXTS = "texts"
    TEXT_MAP = "text map"
    LIST_MAP = "list map"
    TIME = "time"
    INT = "int"


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
    "Content": {"type": _Field.TEXT, "id": _Field.TEXT},
    "Operation": {"type": _Field.TEXT, "content": "Content", **_KEY_FIELDS},
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
        "numCommitsAhead": _Field.INT,
        "numCommitsBehind": _Field.INT,
        "numTotalCommits": _Field.INT,
        "commonAncestorHash": _Field.TEXT,
        "commitMetaOfHEAD": "Commit",
    },
    "Reference": {"name": _Field.TEXT, "hash": _Field.TEXT, "metadata": "RefMeta"},
}
"""The typed values: attribute -> its type, or the name of another message."""


@lru_cache(_REMEMBERED)
def compiled(kind: FilterKind, package: str, text: str) -> Any:
    """Returns a filter compiled for the messages of a package. Raises `InvalidInput`."""
    try:
        return _environment(kind, package).compile(text)
    except RuntimeError as error:
        raise InvalidInput(f"filter: {reason(error)}") from None


def reason(error: RuntimeError) -> str:
    """Returns the first line of the engine's message, without the name of its status."""
    lines = str(error).splitlines() or ["cannot be evaluated"]
    return (
        lines[0]
        .removeprefix("INVALID_ARGUMENT: ")
        .removeprefix("ERROR: ")
        .removesuffix(" [INVALID_ARGUMENT]")
    )


# -- the engine ------------------------------------------------------------------------------------


@cache
def engine() -> Any:
    """Returns the module of the engine. Raises `InvalidInput` if it is not installed."""
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError as error:
        raise _engine_missing() from error
    return cel


def _engine_missing() -> NessieError:
    return NessieError(
        "filters need the CEL engine, which is not installed: pip install 'nessie-cli[filters]'"
    )


_ANY_EQUALITY = "stdlib:\n  exclude_functions:\n    - name: _==_\n    - name: _!=_\n"


@cache
def _environment(kind: FilterKind, package: str) -> Any:
    cel = engine()
    types = {"text": cel.Type.STRING, "operations": cel.Type.List(cel.Type(f"{package}.Operation"))}
    variables = {
        name: types.get(type_) or cel.Type(f"{package}.{type_}")
        for name, type_ in _VARIABLES[kind].items()
    }
    # Values of two types may be compared: they are unequal, except numbers (`1 == 1.0`).
    any_two = [
        cel.Overload(f"{name}_any", cel.Type.BOOL, [cel.Type.DYN, cel.Type.DYN])
        for name in ("equals", "not_equals")
    ]
    equality = [
        cel.FunctionDecl(name, [overload])
        for name, overload in zip(("_==_", "_!=_"), any_two, strict=True)
    ]
    config = cel.NewEnvConfigFromYaml(_ANY_EQUALITY)
    return cel.NewEnv(
        descriptor_pool=_pool(), config=config, variables=variables, functions=equality
    )


_VARIABLES: Mapping[FilterKind, Mapping[str, str]] = {
    FilterKind.REFERENCES: {
        "ref": "Reference",
        "refType": "text",
        "refMeta": "RefMeta",
        "commit": "Commit",
    },
    FilterKind.LOG: {"commit": "Commit", "operations": "operations"},
    FilterKind.ENTRIES: {"entry": "Entry"},
    FilterKind.DIFF: {"key": "Key"},
}


@cache
def _pool() -> Any:
    """Returns the descriptor pool with the messages and the well-known types."""
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
    pool = descriptor_pool.Default()
    for package in (CHECKED, EVALUATED, BARE):
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{package}.proto", package=package, syntax="proto2", dependency=needed
        )
        for name, fields in _MESSAGES.items():
            message = file.message_type.add(name=name)
            for number, (attribute, kind) in enumerate(fields.items(), 1):
                if package == CHECKED:
                    _add_checked(message, number, attribute, kind)
                else:
                    _add_nullable(message, number, attribute, kind, package)
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_checked(message: Any, number: int, name: str, kind: str) -> None:
    """Adds an attribute for the type checker."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto  # type: ignore[import-untyped]

    single, many = Proto.LABEL_OPTIONAL, Proto.LABEL_REPEATED
    if kind in (_Field.TEXT, _Field.TEXTS):
        message.field.add(
            name=name,
            number=number,
            label=single if kind == _Field.TEXT else many,
            type=Proto.TYPE_STRING,
        )
    elif kind in (_Field.TEXT_MAP, _Field.LIST_MAP):
        entry = name[0].upper() + name[1:] + "Entry"
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        nested.field.add(name="key", number=1, label=single, type=Proto.TYPE_STRING)
        if kind == _Field.TEXT_MAP:
            nested.field.add(name="value", number=2, label=single, type=Proto.TYPE_STRING)
        else:
            nested.field.add(
                name="value",
                number=2,
                label=single,
                type=Proto.TYPE_MESSAGE,
                type_name=".google.protobuf.ListValue",
            )
        message.field.add(
            name=name,
            number=number,
            label=many,
            type=Proto.TYPE_MESSAGE,
            type_name=f".{CHECKED}.{message.name}.{entry}",
        )
    else:
        well_known = _NULLABLE.get(kind)
        type_ = (
            f".google.protobuf.{well_known}"
            if well_known and kind != "Content"
            else f".{CHECKED}.{kind}"
        )
        message.field.add(
            name=name, number=number, label=single, type=Proto.TYPE_MESSAGE, type_name=type_
        )


def _add_nullable(message: Any, number: int, name: str, kind: str, package: str) -> None:
    """Adds an attribute for evaluation: null without a value; an empty list or map is a value."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

    well_known = (
        "Value" if package == BARE and kind in (_Field.TIME, "RefMeta") else _NULLABLE.get(kind)
    )
    type_ = f".google.protobuf.{well_known}" if well_known else f".{package}.{kind}"
    message.field.add(
        name=name,
        number=number,
        label=Proto.LABEL_OPTIONAL,
        type=Proto.TYPE_MESSAGE,
        type_name=type_,
    )


_NULLABLE: Mapping[str, str] = {
    _Field.TEXT: "StringValue",
    _Field.TEXTS: "ListValue",
    _Field.TEXT_MAP: "Struct",
    _Field.LIST_MAP: "Struct",
    _Field.TIME: "Timestamp",
    _Field.INT: "Int64Value",
    "Content": "Value",
}


@cache
def message(name: str, package: str = EVALUATED) -> Any:
    """Returns the class of a message."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{name}"))
