"""Schemas: types, field ids and names, and the format version that each type needs.

https://iceberg.apache.org/spec/#schemas-and-data-types
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.values import Document

_SIMPLE = frozenset(
    {
        "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz",
        "timestamp_ns", "timestamptz_ns", "string", "uuid", "binary", "unknown", "variant",
        "geometry", "geography",
    }
)  # fmt: skip
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)")
_EDGES = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})
"""The algorithms of the type geography."""
MOST_NAMES = 1 << 24
"""The most characters of all full names together: a full name repeats those of outer fields."""
_MOST_DIGITS = 38
_MOST_SHOWN = 80
_SINCE_VERSION_3 = frozenset(
    {"timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"}
)
_VERSION_3 = 3


class Field(NamedTuple):
    """A field anywhere in a schema, also the element of a list or the key or value of a map.

    `name` is the full name, such as `orders.element.price`.
    """

    id: int
    name: str
    type: Any
    required: bool
    document: Mapping[str, Any]
    in_structs: bool = True
    """Whether all fields around it are structs."""
    in_required_structs: bool = True
    """Whether they are also required."""

    @property
    def is_struct(self) -> bool:
        """Whether its type is a struct."""
        return isinstance(self.type, dict) and self.type.get("type") == "struct"


def type_name(type_: Any) -> str:
    """Returns the name of a type without its parameters: `decimal`, `struct`, ..."""
    return (
        str(type_["type"])
        if isinstance(type_, dict)
        else re.split(r"[(\[]", str(type_), maxsplit=1)[0].strip()
    )


def is_primitive(type_: Any) -> bool:
    """Whether a type is primitive. The type variant is not."""
    return not isinstance(type_, dict) and type_name(type_) != "variant"


def fields(schema: Document) -> dict[int, Field]:
    """Returns all fields of a schema by id. Raises `InvalidInput` if the schema is invalid."""
    by_id: dict[int, Field] = {}
    length = 0
    for field in _walk(schema, "", None, "schema"):
        length += len(field.name)
        if length > MOST_NAMES:
            raise InvalidInput(
                f"schema: the full names of its fields have more than {MOST_NAMES} characters"
            )
        if field.id in by_id:
            other = by_id[field.id].name
            raise InvalidInput(
                f"schema: the fields {other} and {field.name} have the same id {field.id}"
            )
        by_id[field.id] = field
    names: set[str] = set()
    for field in by_id.values():
        if field.name in names:
            raise InvalidInput(f"schema: there are two fields {field.name}")
        names.add(field.name)
    return by_id


def _walk(type_: Any, prefix: str, around: Field | None, where: str) -> Iterator[Field]:
    if not isinstance(type_, dict):
        return
    in_structs = around is None or (around.in_structs and around.is_struct)
    in_required = around is None or (in_structs and around.in_required_structs and around.required)
    kind = values.text(type_, "type", where)
    if kind == "struct":
        for document in values.objects(type_, "fields", where):
            name = prefix + values.text(document, "name", f"{where}: field")
            id_ = values.integer(document, "id", f"{where}: field {name}")
            required = values.boolean(document, "required", f"{where}: field {name}")
            yield from _with_parts(
                Field(id_, name, document.get("type"), required, document, in_structs, in_required)
            )
        return
    parts = {"list": ("element",), "map": ("key", "value")}.get(kind)
    if parts is None:
        raise InvalidInput(f"{where}: there is no type {kind!r}")
    for part in parts:
        id_ = values.integer(type_, f"{part}-id", where)
        required = part == "key" or values.boolean(type_, f"{part}-required", where)
        yield from _with_parts(
            Field(id_, prefix + part, type_.get(part), required, type_, in_structs, in_required)
        )


def _with_parts(field: Field) -> Iterator[Field]:
    where = f"schema: field {field.name}"
    if not isinstance(field.type, dict):
        canonical_type(field.type, where)
    yield field
    yield from _walk(field.type, f"{field.name}.", field, where)


def canonical_type(type_: Any, where: str) -> str:
    """Returns a primitive type in the spelling of the specification. Raises `InvalidInput`."""
    if not isinstance(type_, str):
        raise InvalidInput(f"{where}: the type is missing or is not a type")
    try:
        return primitive(type_)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}") from None


def primitive(type_: str) -> str:
    """Returns a primitive type in the spelling of the specification. Raises `InvalidInput`."""
    name = type_.lower()
    if name in _SIMPLE:
        return name
    if (fixed := _FIXED.fullmatch(name)) and int(fixed[1]) in values.INT32:
        return f"fixed[{int(fixed[1])}]"
    if (decimal := _DECIMAL.fullmatch(name)) and int(decimal[2]) in values.INT32:
        precision, scale = int(decimal[1]), int(decimal[2])
        if precision > _MOST_DIGITS:
            raise InvalidInput(f"decimal has at most {_MOST_DIGITS} digits, not {precision}")
        return f"decimal({precision}, {scale})"
    if geospatial := _geospatial(type_):
        return geospatial
    raise InvalidInput(f"there is no type {type_[:_MOST_SHOWN]!r}")


def _geospatial(type_: str) -> str | None:
    """Returns the type geometry or geography with parameters, None for another type."""
    name, opening, parameters = type_.partition("(")
    name = name.rstrip().lower()
    if not opening or not parameters.endswith(")") or name not in ("geometry", "geography"):
        return None
    given = parameters[:-1].strip()
    if name == "geometry":
        return f"{name}({given})" if given and ")" not in given else None
    reference, comma, algorithm = (part.strip() for part in given.partition(","))
    if not reference or (comma and algorithm.lower() not in _EDGES):
        return None
    return f"{name}({reference}, {algorithm})" if comma else f"{name}({reference})"


def canonical(schema: Document) -> Document:
    """Returns a copy of a schema with types in the spelling of the specification.

    Raises `InvalidInput` if the schema is invalid.
    """
    fields(schema)
    return {**_mapped(schema, lambda id_: id_), "type": "struct"}


def ids_by_name(by_id: Mapping[int, Field]) -> dict[str, int]:
    """Returns the ids of fields by their full names."""
    return {field.name: field.id for field in by_id.values()}


def check(schema: Document, version: int) -> dict[int, Field]:
    """Returns all fields of a schema. Raises `InvalidInput` if it is invalid for a version."""
    by_id = fields(schema)
    for field in by_id.values():
        if version < _VERSION_3 and type_name(field.type) in _SINCE_VERSION_3:
            raise InvalidInput(
                f"schema: field {field.name}: type {field.type} needs format version {_VERSION_3}"
            )
        if version < _VERSION_3 and field.document.get("initial-default") is not None:
            raise InvalidInput(
                f"schema: field {field.name}: initial-default needs format version {_VERSION_3}"
            )
        for member in ("initial-default", "write-default"):
            # Comparing schemas with large defaults would stop other threads for long.
            if isinstance(field.document.get(member), dict | list):
                raise InvalidInput(f"schema: field {field.name}: {member} must be a single value")
        if field.required and type_name(field.type) == "unknown":
            raise InvalidInput(
                f"schema: field {field.name}: a field of type unknown must be optional"
            )
    for id_ in identifiers(schema):
        identifier = by_id.get(id_)
        if identifier is None:
            raise InvalidInput(f"schema: identifier field {id_} is not in the schema")
        _check_identifier(identifier)
    return by_id


def _check_identifier(field: Field) -> None:
    if not is_primitive(field.type) or not field.required:
        raise InvalidInput(f"schema: identifier field {field.name} must be primitive and required")
    if type_name(field.type) in ("float", "double"):
        raise InvalidInput(f"schema: identifier field {field.name} must not be {field.type}")
    if not field.in_required_structs:
        raise InvalidInput(
            f"schema: identifier field {field.name} must lie in required structs only"
        )


def identifiers(schema: Document) -> set[int]:
    """Returns the ids of the identifier fields."""
    given = schema.get("identifier-field-ids")
    if isinstance(given, list):
        values.check_few(given, "identifier-field-ids", "schema")
    return set(values.integers(schema, "identifier-field-ids", "schema")) if given else set()


def form(schema: Document) -> Any:
    """Returns the fields and identifier fields, without the schema id, for comparisons."""
    return _comparable(schema), sorted(identifiers(schema))


def columns(type_: Any, path: str = "") -> Iterator[tuple[int, str, str]]:
    """Yields the id, the full name and the type of each column and of the fields inside it.

    Of a nested type it is only the kind, such as `struct`.
    """
    if not isinstance(type_, dict):
        return
    inner = [(field["id"], field["name"], field["type"]) for field in type_.get("fields") or ()]
    parts = [part for part in ("element", "key", "value") if part in type_]
    for id_, name, inside in [*inner, *((type_[f"{p}-id"], p, type_[p]) for p in parts)]:
        full = f"{path}.{name}" if path else name
        kind = inside["type"] if isinstance(inside, dict) else canonical_type(inside, "schema")
        yield id_, full, str(kind)
        yield from columns(inside, full)


def _comparable(type_: Any) -> Any:
    if not isinstance(type_, dict):
        return canonical_type(type_, "schema")
    kind = type_.get("type")
    if kind == "struct":
        return [
            (field["id"], field["name"], field["required"], _comparable(field["type"]),
             field.get("doc"), field.get("initial-default"), field.get("write-default"))
            for field in type_["fields"]
        ]  # fmt: skip
    parts = ("element",) if kind == "list" else ("key", "value")
    return [
        kind,
        *((type_[f"{p}-id"], type_.get(f"{p}-required"), _comparable(type_[p])) for p in parts),
    ]


def with_fresh_ids(schema: Document, next_id: Callable[[], int]) -> Document:
    """Returns a copy of a schema with new field ids, those of outer fields first."""
    ids: dict[int, int] = {}

    def fresh(old: int) -> int:
        ids[old] = next_id()
        return ids[old]

    made: Document = _mapped(schema, fresh)
    if identifier_ids := identifiers(schema):
        made["identifier-field-ids"] = sorted(ids[id_] for id_ in identifier_ids)
    return made


def _mapped(type_: Any, id_of: Callable[[int], int]) -> Any:
    """Copies a type with its field ids mapped."""
    if not isinstance(type_, dict):
        return canonical_type(type_, "schema")
    if type_["type"] == "struct":
        ids = [id_of(field["id"]) for field in type_["fields"]]
        made = [
            {**field, "id": id_, "type": _mapped(field["type"], id_of)}
            for id_, field in zip(ids, type_["fields"], strict=True)
        ]
        return {**type_, "fields": made}
    parts = ("element",) if type_["type"] == "list" else ("key", "value")
    mapped = {f"{part}-id": id_of(type_[f"{part}-id"]) for part in parts}
    return {**type_, **mapped, **{part: _mapped(type_[part], id_of) for part in parts}}
