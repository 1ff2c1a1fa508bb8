"""Partition specs and sort orders: transforms of source fields.

https://iceberg.apache.org/spec/#partitioning and https://iceberg.apache.org/spec/#sorting
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import schemas, values
from nessie_cli.iceberg.builder.schemas import Field
from nessie_cli.iceberg.builder.values import Document

FIRST_FIELD_ID = 1000
UNSORTED_ORDER_ID = 0
_MOST_DIGITS = 10
_WIDTH = re.compile(r"(\w+)\[([0-9]+)\]", re.ASCII)
_DAYS = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_BUCKETS = (
    frozenset({"int", "long", "time", "string", "binary", "fixed", "decimal", "uuid"}) | _DAYS
)
_SOURCES: Mapping[str, frozenset[str]] = {
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _DAYS - {"date"},
}
_SOURCES_WITH_WIDTH: Mapping[str, frozenset[str]] = {
    "bucket": _BUCKETS,
    "truncate": frozenset({"int", "long", "string", "binary", "decimal"}),
}
_NEVER_IDENTITY = frozenset({"geometry", "geography", "variant"})


def transform(text: str, where: str) -> str:
    """Returns a transform in the spelling of the specification. Unknown ones are preserved."""
    if match := _WIDTH.fullmatch(text):
        # Python refuses to read integers of thousands of digits.
        name, width = match[1].lower(), int(match[2][:_MOST_DIGITS])
        if len(match[2]) > _MOST_DIGITS or width not in values.INT32:
            raise InvalidInput(f"{where}: {text}: the width is beyond 32 bits")
        if name in _SOURCES_WITH_WIDTH:
            if width < 1:
                raise InvalidInput(f"{where}: {text}: the width must be at least 1")
            return f"{name}[{width}]"
    lower = text.lower()
    return lower if lower in (*_SOURCES, "identity", "void") else text


def _check_transform(name: str, source: Field, where: str) -> None:
    """Raises `InvalidInput` if the transform does not apply to the source field."""
    if not schemas.is_primitive(source.type):
        kind = schemas.type_name(source.type)
        raise InvalidInput(f"{where}: the source {source.name} is not primitive: {kind}")
    _check_type(name, source, where)


def _check_type(name: str, source: Field, where: str) -> None:
    """Raises `InvalidInput` if Iceberg has the transform, but not for the type of the field."""
    kind = schemas.type_name(source.type)
    has_width = _WIDTH.fullmatch(name)
    accepted = _SOURCES_WITH_WIDTH.get(has_width[1]) if has_width else _SOURCES.get(name)
    refused = (
        kind in _NEVER_IDENTITY
        if name == "identity"
        else accepted is not None and kind not in accepted
    )
    if refused:
        raise InvalidInput(f"{where}: {name} cannot transform {source.name} of type {source.type}")


# -- partition specs ------------------------------------------------------------------------------


FieldIds = dict[tuple[int, str], int]
"""The ids of partition fields, by their source and transform."""


def field_ids(specs: Iterable[Document]) -> FieldIds:
    """Returns the ids of the fields of specs."""
    return {
        (field["source-id"], transform(field["transform"], "partition spec")): field["field-id"]
        for spec_ in specs
        for field in spec_["fields"]
        if "field-id" in field
    }


def spec(given: Document, earlier: FieldIds, last_id: int) -> Document:
    """Returns a copy of a new partition spec in which every field has an id.

    If the fields have no ids, each gets the id of the same field in an `earlier` spec, otherwise
    the next free one.
    """
    where = "partition spec"
    if len({field.get("field-id") is None for field in values.objects(given, "fields", where)}) > 1:
        raise InvalidInput(f"{where}: some fields have a field-id and some have none")
    made: list[Document] = []
    for field in values.objects(given, "fields", where):
        name = values.text(field, "name", where)
        by = transform(values.text(field, "transform", where), where)
        source = values.integer(field, "source-id", where)
        id_ = (
            values.integer(field, "field-id", where) if field.get("field-id") is not None else None
        )
        if id_ is None:
            id_ = earlier.get((source, by)) or max(last_id, FIRST_FIELD_ID - 1) + 1
        last_id = max(last_id, id_)
        made.append({**field, "name": name, "transform": by, "source-id": source, "field-id": id_})
    _check_distinct([field["name"] for field in made])
    ids = [field["field-id"] for field in made]
    if len(set(ids)) != len(ids):
        raise InvalidInput(f"{where}: two fields have the same field-id")
    return {**given, "fields": made}


def check_spec(spec_: Document, fields: Mapping[int, Field], version: int) -> None:
    """Raises `InvalidInput` if the spec is invalid for a schema's fields and format version.

    Does not check the names.
    """
    for number, field in enumerate(spec_["fields"]):
        where = f"partition spec: field {field['name']}"
        if version == 1 and field["field-id"] != FIRST_FIELD_ID + number:
            raise InvalidInput(
                f"{where}: format version 1 needs the field-id {FIRST_FIELD_ID + number}"
            )
        by = transform(field["transform"], where)
        if by == "void":
            continue
        source = fields.get(field["source-id"])
        if source is None:
            raise InvalidInput(f"{where}: the schema has no field {field['source-id']}")
        _check_transform(by, source, where)
        if not source.in_structs:
            raise InvalidInput(f"{where}: the source {source.name} lies in a list or map")


def check_earlier_spec(spec_: Document, fields: Mapping[int, Field]) -> None:
    """Raises `InvalidInput` if Iceberg does not load a spec that is not the default.

    Its sources may have been dropped from the schema. Does not check the names.
    """
    for field in spec_["fields"]:
        where = f"partition spec: field {field['name']}"
        by = transform(field["transform"], where)
        if field["source-id"] in fields:
            _check_type(by, fields[field["source-id"]], where)


def check_names(
    spec_: Document, fields: Mapping[int, Field], ids_by_name: Mapping[str, int]
) -> None:
    """Raises `InvalidInput` if a partition field has the name of a column other than its source.

    Also if a name is empty, or if two fields have the same one. Iceberg's Java library does not
    load a table with such a spec, even if it is not the default.
    """
    _check_distinct([field["name"] for field in spec_["fields"]])
    for field in spec_["fields"]:
        source = field["source-id"]
        if source in fields and ids_by_name.get(field["name"], source) != source:
            raise InvalidInput(
                f"partition spec: field {field['name']}: the schema has another field of this name"
            )


def _check_distinct(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if not name or count > 1:
            why = f"two fields are named {name!r}" if name else "a name is empty"
            raise InvalidInput(f"partition spec: {why}")


def spec_form(spec_: Document) -> list[Any]:
    """Returns the fields of a spec without ids, for comparisons."""
    return [
        (field["source-id"], transform(field["transform"], "partition spec"), field["name"])
        for field in spec_["fields"]
    ]


def last_field_id(spec_: Document) -> int:
    """Returns the highest field id of a spec, 999 if it has no fields."""
    return max((field["field-id"] for field in spec_["fields"]), default=FIRST_FIELD_ID - 1)


# -- sort orders ----------------------------------------------------------------------------------


def order(given: Document) -> Document:
    """Returns a copy of a new sort order. Raises `InvalidInput` if it is invalid."""
    where = "sort order"
    made = []
    for field in values.objects(given, "fields", where):
        direction = values.text(field, "direction", where).lower()
        nulls = values.text(field, "null-order", where).lower()
        if direction not in ("asc", "desc") or nulls not in ("nulls-first", "nulls-last"):
            raise InvalidInput(f"{where}: {direction} {nulls} is not a direction and null-order")
        by = transform(values.text(field, "transform", where), where)
        source = values.integer(field, "source-id", where)
        made.append(
            {
                **field,
                "transform": by,
                "source-id": source,
                "direction": direction,
                "null-order": nulls,
            }
        )
    return {**given, "fields": made}


def check_order(order_: Document, fields: Mapping[int, Field]) -> None:
    """Raises `InvalidInput` if the sort order is invalid for the fields of a schema."""
    for field in order_["fields"]:
        source = fields.get(field["source-id"])
        if source is None:
            raise InvalidInput(f"sort order: the schema has no field {field['source-id']}")
        _check_transform(transform(field["transform"], "sort order"), source, "sort order")


def order_form(order_: Document) -> list[Any]:
    """Returns the fields of an order, for comparisons."""
    return [
        (
            transform(field["transform"], "sort order"),
            field["source-id"],
            field["direction"],
            field["null-order"],
        )
        for field in order_["fields"]
    ]
