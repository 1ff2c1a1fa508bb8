"""The structs of content keys and contents, each with `of` for a value of the model.

`values` converts them back. Requests, answers, files of the command line and schemas all use these
structs. An attribute with a plain default is left out if it has that value. One with a factory is
always written.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta, Struct, field, to_builtins

from nessie_cli import model
from nessie_cli.wire.scalars import ContentId, Json, empty_list

Int32 = Annotated[int, Meta(ge=model.INT32.start, le=model.INT32.stop - 1)]
Int64 = Annotated[int, Meta(ge=model.INT64.start, le=model.INT64.stop - 1)]

MOST_ITEMS = 100_000
"""The most items of a map or of a list of texts in a request."""
Texts = Annotated[list[str], Meta(max_length=MOST_ITEMS)]
Properties = Annotated[dict[str, str], Meta(max_length=MOST_ITEMS)]


class Key(Struct):
    """A content key."""

    elements: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, key: model.ContentKey) -> Self:
        """Returns the struct of a key."""
        return cls(list(key.elements))


class RestoredFrom(Struct):
    """Where a deleted content was: the hash of a commit, and its key there."""

    hash: str
    key: Key

    @classmethod
    def of(cls, place: model.RestoredFrom) -> Self:
        """Returns the struct of a place."""
        return cls(place.hash, Key.of(place.key))


def optional_key(key: model.ContentKey | None) -> Key | None:
    """Returns the struct of a key, or None."""
    return None if key is None else Key.of(key)


class _Content(Struct, rename="camel", tag_field="type", omit_defaults=True):
    """The base of the known types. Fields have the names of those in the model."""

    id: ContentId | None = field(default_factory=NoneType)


class IcebergTable(_Content, kw_only=True, tag="ICEBERG_TABLE"):
    """An Iceberg table at one snapshot."""

    metadata_location: str
    snapshot_id: Int64
    schema_id: Int32
    spec_id: Int32
    sort_order_id: Int32

    @classmethod
    def of(cls, table: model.IcebergTable) -> Self:
        """Returns the struct of a table."""
        return cls(
            id=table.id,
            metadata_location=table.metadata_location,
            snapshot_id=table.snapshot_id,
            schema_id=table.schema_id,
            spec_id=table.spec_id,
            sort_order_id=table.sort_order_id,
        )


class IcebergView(_Content, kw_only=True, tag="ICEBERG_VIEW"):
    """An Iceberg view at one version."""

    metadata_location: str
    version_id: Int64
    schema_id: Int32
    sql_text: str | None = None
    dialect: str | None = None

    @classmethod
    def of(cls, view: model.IcebergView) -> Self:
        """Returns the struct of a view."""
        return cls(
            id=view.id,
            metadata_location=view.metadata_location,
            version_id=view.version_id,
            schema_id=view.schema_id,
            sql_text=view.sql_text,
            dialect=view.dialect,
        )


class DeltaLakeTable(_Content, kw_only=True, tag="DELTA_LAKE_TABLE"):
    """A Delta Lake table."""

    metadata_location_history: list[str] = field(default_factory=empty_list)
    checkpoint_location_history: list[str] = field(default_factory=empty_list)
    last_checkpoint: str | None = field(default_factory=NoneType)

    @classmethod
    def of(cls, table: model.DeltaLakeTable) -> Self:
        """Returns the struct of a table."""
        return cls(
            id=table.id,
            metadata_location_history=list(table.metadata_location_history),
            checkpoint_location_history=list(table.checkpoint_location_history),
            last_checkpoint=table.last_checkpoint,
        )


class Namespace(_Content, kw_only=True, tag="NAMESPACE"):
    """A namespace; `properties` is left out if there are none."""

    elements: list[str] = field(default_factory=empty_list)
    properties: Properties = {}

    @classmethod
    def of(cls, namespace: model.Namespace) -> Self:
        """Returns the struct of a namespace."""
        return cls(
            id=namespace.id,
            elements=list(namespace.elements),
            properties=dict(namespace.properties),
        )


class Udf(_Content, kw_only=True, tag="UDF"):
    """A user-defined function."""

    sql_text: str | None = None
    dialect: str | None = None
    version_id: str | None = None
    signature_id: str | None = None
    metadata_location: str | None = None

    @classmethod
    def of(cls, function: model.UDF) -> Self:
        """Returns the struct of a function."""
        return cls(
            id=function.id,
            sql_text=function.sql_text,
            dialect=function.dialect,
            version_id=function.version_id,
            signature_id=function.signature_id,
            metadata_location=function.metadata_location,
        )


ForeignType = Annotated[str, Meta(extra_json_schema={"not": {"enum": sorted(model.CONTENT_TYPES)}})]


class ForeignContent(Struct):
    """A content of a type unknown to this version, with all of its attributes."""

    is_open: ClassVar[bool] = True
    type: ForeignType
    id: ContentId | None = field(default_factory=NoneType)


CONTENTS: Mapping[str, Any] = {
    str(struct.__struct_config__.tag): struct
    for struct in (IcebergTable, IcebergView, DeltaLakeTable, Namespace, Udf)
}
"""The struct of each known content type."""

_CONTENTS = (*CONTENTS.values(), ForeignContent)
AnyContent = Annotated[
    Any,
    Meta(
        title="Content",
        extra_json_schema={"anyOf": [{"$ref": struct.__name__} for struct in _CONTENTS]},
        extra={"structs": _CONTENTS},
    ),
]
"""A content of any type: one of these structs, or a dictionary for an unknown type."""


def content_struct(content: model.Content) -> Struct | Json:
    """Returns a content as its struct: `type` and `id` first (`id` null if unknown)."""
    if content.payload:
        struct: Struct = CONTENTS[content.type].of(content)
        return struct
    return {"type": content.type_name, "id": content.id} | content.attributes()


def optional_content(content: model.Content | None) -> Struct | Json | None:
    """Returns the struct of a content, or None."""
    return None if content is None else content_struct(content)


def content_json(content: model.Content) -> Json:
    """Returns a content as plain JSON."""
    body: Json = to_builtins(content_struct(content))
    return body
