"""Partition specs and sort orders: transforms of source fields.

https://iceberg.apache.org/spec/#partitioning and https://iceberg.apache.org/spec/#sorting
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import schemas, values
from nessie_cli.iceberg.builder.schemas import Field
from nessie_cli.iceberg.builder.values import Document

FIRST_FIELD_ID = 1000
UNSORTED_ORDER_ID = 0
_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)\]", re.IGNORECASE)
_MOST_DIGITS = 10
_DAYS = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_BUCKETS = (
    frozenset({"int", "long", "time", "string", "binary", "fixed", "decimal", "uuid"}) | _DAYS
)
_SOURCES: Mapping[str, frozenset[str]] = {
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _DAYS - {"date"},
    "bucket": _BUCKETS,
    "truncate": frozenset({"int", "long", "string", "binary", "decimal"}),
}
_NEVER_IDENTITY = frozenset({"geometry", "geography", "variant"})


def transform(text: str, where: str) -> str:
    """Returns a transform in the spelling of the specification. Unknown ones are preserved."""
    if found := _WIDTH.fullmatch(text):
        if len(found[2]) > _MOST_DIGITS or not 0 < int(found[2]) < 1 << 31:
            raise InvalidInput(f"{where}: {text[:60]}: the width must be between 1 and 2147483647")
        return f"{found[1].lower()}[{int(found[2])}]"
    lower = text.lower()
    return lower if lower in (*_SOURCES, "identity", "void") else text


def _check_transform(name: str, source: Field, where: str) -> None:
    """Raises `InvalidInput` if the transform does not apply to the source field."""
    if not schemas.is_primitive(source.type):
        raise InvalidInput(f"{where}: the source {source.name} is not primitive: {source.type}")
    kind = schemas.type_name(source.type)
    wanted = _SOURCES.get(name.partition("[")[0])
    refused = (
        kind in _NEVER_IDENTITY if name == "identity" else wanted is not None and kind not in wanted
    )
    if refused:
        raise InvalidInput(f"{where}: {name} cannot transform {source.name} of type {source.type}")


# -- partition specs ------------------------------------------------------------------------------


def spec(given: Document, known: Iterable[Document], last_id: int) -> Document:
    """Returns a copy of a new partition spec in which every field has an id.

    If the fields have no ids, each gets the id of the same field in a `known` spec, otherwise the
    next free one.
    """
    where = "partition spec"
    if len({one.get("field-id") is None for one in values.objects(given, "fields", where)}) > 1:
        raise InvalidInput(f"{where}: some fields have a field-id and some have none")
    earlier = {
        (one["source-id"], transform(one["transform"], where)): one["field-id"]
        for other in known
        for one in other["fields"]
        if "field-id" in one
    }
    made: list[Document] = []
    names: set[str] = set()
    for one in values.objects(given, "fields", where):
        name = values.text(one, "name", where)
        if not name or name in names:
            raise InvalidInput(
                f"{where}: two fields are named {name!r}" if name else f"{where}: a name is empty"
            )
        names.add(name)
        by = transform(values.text(one, "transform", where), where)
        source = values.integer(one, "source-id", where)
        id_ = values.integer(one, "field-id", where) if one.get("field-id") is not None else None
        if id_ is None:
            id_ = earlier.get((source, by)) or max(last_id, FIRST_FIELD_ID - 1) + 1
        last_id = max(last_id, id_)
        made.append({**one, "name": name, "transform": by, "source-id": source, "field-id": id_})
    ids = [one["field-id"] for one in made]
    if len(set(ids)) != len(ids):
        raise InvalidInput(f"{where}: two fields have the same field-id")
    return {**given, "fields": made}


def check_spec(spec_: Document, fields: Mapping[int, Field], version: int) -> None:
    """Raises `InvalidInput` if the spec is invalid for a schema's fields and format version."""
    check_names(spec_, fields)
    for number, one in enumerate(spec_["fields"]):
        where = f"partition spec: field {one['name']}"
        if version == 1 and one["field-id"] != FIRST_FIELD_ID + number:
            raise InvalidInput(
                f"{where}: format version 1 needs the field-id {FIRST_FIELD_ID + number}"
            )
        if one["transform"] == "void":
            continue
        source = fields.get(one["source-id"])
        if source is None:
            raise InvalidInput(f"{where}: the schema has no field {one['source-id']}")
        _check_transform(one["transform"], source, where)
        if any(schemas.type_name(fields[parent].type) != "struct" for parent in source.parents):
            raise InvalidInput(f"{where}: the source {source.name} lies in a list or map")


def check_names(spec_: Document, fields: Mapping[int, Field]) -> None:
    """Raises `InvalidInput` if a partition field has the name of a column other than its source.

    Iceberg's Java library does not load a table with such a spec, even if it is not the default.
    """
    ids = {field.name: field.id for field in fields.values()}
    for one in spec_["fields"]:
        source = one["source-id"]
        if source in fields and ids.get(one["name"], source) != source:
            raise InvalidInput(
                f"partition spec: field {one['name']}: the schema has another field of this name"
            )


def same_spec(one: Document, other: Document) -> bool:
    """Whether two specs have the same fields. Their ids are ignored."""
    return _parts(one) == _parts(other)


def _parts(spec_: Document) -> list[Any]:
    return [
        (one["source-id"], transform(one["transform"], "partition spec"), one["name"])
        for one in spec_["fields"]
    ]


def last_field_id(spec_: Document) -> int:
    """Returns the highest field id of a spec, 999 if it has no fields."""
    return max((one["field-id"] for one in spec_["fields"]), default=FIRST_FIELD_ID - 1)


# -- sort orders ----------------------------------------------------------------------------------


def order(given: Document) -> Document:
    """Returns a copy of a new sort order. Raises `InvalidInput` if it is invalid."""
    where = "sort order"
    made = []
    for one in values.objects(given, "fields", where):
        direction = values.text(one, "direction", where).lower()
        nulls = values.text(one, "null-order", where).lower()
        if direction not in ("asc", "desc") or nulls not in ("nulls-first", "nulls-last"):
            raise InvalidInput(f"{where}: {direction} {nulls} is not a direction and null-order")
        by = transform(values.text(one, "transform", where), where)
        source = values.integer(one, "source-id", where)
        made.append(
            {
                **one,
                "transform": by,
                "source-id": source,
                "direction": direction,
                "null-order": nulls,
            }
        )
    return {**given, "fields": made}


def check_order(order_: Document, fields: Mapping[int, Field]) -> None:
    """Raises `InvalidInput` if the sort order is invalid for the fields of a schema."""
    for one in order_["fields"]:
        source = fields.get(one["source-id"])
        if source is None:
            raise InvalidInput(f"sort order: the schema has no field {one['source-id']}")
        _check_transform(one["transform"], source, "sort order")


def same_order(one: Document, other: Document) -> bool:
    """Whether two orders have the same fields. Their ids are ignored."""
    return _sorted_by(one) == _sorted_by(other)


def _sorted_by(order_: Document) -> list[Any]:
    return [
        (
            transform(one["transform"], "sort order"),
            one["source-id"],
            one["direction"],
            one["null-order"],
        )
        for one in order_["fields"]
    ]
