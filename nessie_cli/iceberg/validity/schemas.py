"""Schemas: their fields, types and identifier fields."""

from __future__ import annotations

from nessie_cli.iceberg.builder import schemas
from nessie_cli.iceberg.builder.document import NEWEST_VERSION
from nessie_cli.iceberg.validity.defaults import check_default
from nessie_cli.iceberg.validity.nodes import DocumentNode


def check_schema(schema: DocumentNode) -> int:
    """Checks a schema; returns its id, which is 0 if the file has none.

    Types need no format version here, because Iceberg's parser does not compare them.
    """
    if schema.object().get("type") != "struct":
        schema.refuse("is not a schema: its type is not struct")
    _check_struct(schema)
    id_ = schema.given("schema-id")
    number = 0 if id_ is None else id_.integer()
    if identifiers := schema.given("identifier-field-ids"):
        for identifier in identifiers.items():
            identifier.integer()
    with schema.placed():
        schemas.check(schema.value, NEWEST_VERSION)
    return number


def _check_struct(struct: DocumentNode) -> None:
    for field in struct.need("fields").items():
        field.need("id").integer()
        field.need("name").text()
        type_ = field.need("type")
        _check_type(type_)
        for name in ("initial-default", "write-default"):
            if default := field.find(name):
                check_default(default, type_.value)
        if doc := field.given("doc"):
            doc.text()
        field.need("required").boolean()


def _check_type(type_: DocumentNode) -> None:
    if isinstance(type_.value, str):
        with type_.placed():
            schemas.primitive(type_.value)
        return
    kind = type_.object().get("type")
    if kind == "struct":
        _check_struct(type_)
    elif kind == "list":
        _check_part(type_, "element")
        type_.need("element-required").boolean()
    elif kind == "map":
        _check_part(type_, "key")
        _check_part(type_, "value")
        type_.need("value-required").boolean()
    else:
        type_.refuse("is not a type")


def _check_part(type_: DocumentNode, name: str) -> None:
    type_.need(f"{name}-id").integer()
    _check_type(type_.need(name))
