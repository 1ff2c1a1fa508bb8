"""The tree of a compiled filter, as messages of Protocol Buffers.

The engine has no interface to the tree, but writes it as `cel.expr.CheckedExpr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from nessie_cli.errors import InvalidInput


def checked_expression(compiled: Any) -> Any:
    """Returns the root (`expr`) and the types of the nodes (`types`) of a compiled filter.

    Raises `InvalidInput` if it is nested too deeply.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    container, checked = _message("Any")(), _message("Checked")()
    try:
        container.ParseFromString(compiled.serialize())
        checked.ParseFromString(container.value)
    except DecodeError:
        raise InvalidInput("filter: is nested too deeply") from None
    return checked


def text_of(node: Any) -> str | None:
    """Returns the text of a node that is a literal text; otherwise None."""
    if node.WhichOneof("kind") != "constant":
        return None
    constant = _message("Constant")()
    constant.ParseFromString(node.constant)
    return constant.text if constant.HasField("text") else None


_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Checked": {"types": (3, "[TypeEntry]"), "expr": (4, "Node")},
    "TypeEntry": {"key": (1, "number"), "value": (2, "Type")},
    "Type": {"primitive": (3, "number")},
    "Any": {"value": (2, "bytes")},
    "Node": {
        "id": (2, "number"),
        "constant": (3, "bytes"),
        "ident": (4, "Ident"),
        "select": (5, "Select"),
        "call": (6, "Call"),
        "list": (7, "List"),
        "struct": (8, "Struct"),
        "comprehension": (9, "Comprehension"),
    },
    "Ident": {"name": (1, "string")},
    "Constant": {"text": (6, "string")},
    "Select": {"operand": (1, "Node"), "field": (2, "string")},
    "Call": {"target": (1, "Node"), "function": (2, "string"), "args": (3, "[Node]")},
    "List": {"elements": (1, "[Node]")},
    "Struct": {"entries": (2, "[Entry]")},
    "Entry": {"map_key": (3, "Node"), "value": (4, "Node")},
    "Comprehension": {
        "iter_var": (1, "string"),
        "iter_range": (2, "Node"),
        "accu_var": (3, "string"),
        "accu_init": (4, "Node"),
        "condition": (5, "Node"),
        "step": (6, "Node"),
        "result": (7, "Node"),
    },
}
"""The attributes of `cel.expr.CheckedExpr` that matter here, by number and type.

See https://github.com/google/cel-spec/blob/master/proto/cel/expr/syntax.proto.
"""
_PACKAGE = "nessie.expression"


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool  # type: ignore[import-untyped]

    proto = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "bytes": proto.TYPE_BYTES,
        "string": proto.TYPE_STRING,
        "number": proto.TYPE_INT64,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="nessie.expression.proto", package=_PACKAGE, syntax="proto2"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "Node":
            message.oneof_decl.add(name="kind")
        for field, (number, type_) in fields.items():
            many, plain = type_.startswith("["), type_.strip("[]")
            added = message.field.add(
                name=field,
                number=number,
                label=proto.LABEL_REPEATED if many else proto.LABEL_OPTIONAL,
                type=scalars.get(plain, proto.TYPE_MESSAGE),
            )
            if plain not in scalars:
                added.type_name = f".{_PACKAGE}.{plain}"
            if name == "Node" and field != "id":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def _message(name: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))
