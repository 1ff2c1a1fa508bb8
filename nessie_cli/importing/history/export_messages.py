"""The Protocol Buffers messages of the original server's export, built when they are needed.

They are those of `transfer.proto` in the sources of projectnessie/nessie, without the fields that
an import does not read. Numbers and types must be equal to those there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

_PACKAGE = "nessie.transfer"

_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "ExportMeta": {
        "version": (2, "int32"),
        "named_references_count": (3, "int64"),
        "commit_count": (4, "int64"),
        "named_references_files": (5, "string*"),
        "commits_files": (6, "string*"),
        "nessie_version": (7, "string"),
        "generic_obj_files": (9, "string*"),
    },
    "Ref": {"name": (2, "string"), "pointer": (3, "bytes")},
    "NamedReference": {
        "ref_type": (1, "int32"),
        "name": (2, "string"),
        "commit_id": (3, "bytes"),
    },
    "HeaderEntry": {"name": (1, "string"), "values": (2, "string*")},
    "Operation": {
        "operation_type": (1, "int32"),
        "content_key": (2, "string*"),
        "content_id": (3, "string"),
        "payload": (4, "int32"),
        "value": (5, "bytes"),
    },
    "Commit": {
        "commit_id": (1, "bytes"),
        "parent_commit_id": (3, "bytes"),
        "additional_parents": (4, "bytes*"),
        "metadata": (5, "bytes"),
        "operations": (6, "Operation*"),
        "created_time_micros": (7, "int64"),
        "message": (8, "string"),
        "headers": (9, "HeaderEntry*"),
    },
    "RepositoryDescriptionProto": {"default_branch_name": (5, "string")},
    "RelatedObj": {"type_name": (2, "string")},
}
"""The fields of each message: number and type; `*` is a list. An enumeration is an int32."""


@cache
def messages() -> Mapping[str, Any]:
    """Returns the class of each message."""
    from google.protobuf import (  # type: ignore[import-untyped]
        descriptor_pb2,
        descriptor_pool,
        message_factory,
    )

    fields = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="nessie.transfer.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, described in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, type_) in described.items():
            field = message.field.add(name=field_name, number=number)
            field.label = fields.LABEL_REPEATED if type_.endswith("*") else fields.LABEL_OPTIONAL
            name = type_.removesuffix("*")
            if name in _MESSAGES:
                field.type, field.type_name = fields.TYPE_MESSAGE, f".{_PACKAGE}.{name}"
            else:
                field.type = fields.Type.Value(f"TYPE_{name.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }
