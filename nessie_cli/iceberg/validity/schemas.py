"""Schemas: their fields, types, identifier fields, and default values of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from typing import Any

from nessie_cli.iceberg.builder import schemas
from nessie_cli.iceberg.builder.document import NEWEST_VERSION
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


def refuse_repeated_ids(schema: DocumentNode) -> None:
    """Refuses a schema in which an id occurs twice. The schema may be invalid otherwise.

    Iceberg ignores this member, but PyIceberg reads it. If a column lies inside itself, by its id,
    PyIceberg takes all memory.
    """
    repeated = [id_ for id_, count in Counter(_ids_in(schema.value)).items() if count > 1]
    if repeated:
        schema.refuse(f"has several fields with the id {min(repeated)}")


def _ids_in(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    elif isinstance(value, dict):
        for name in ("id", "element-id", "key-id", "value-id"):
            if isinstance(value.get(name), int):
                yield value[name]
        for name in ("fields", "type", "element", "key", "value"):
            yield from _ids_in(value.get(name))


def _check_struct(struct: DocumentNode) -> None:
    for field in struct.need("fields").items():
        field.need("id").integer()
        field.need("name").text()
        type_ = field.need("type")
        _check_type(type_)
        for name in ("initial-default", "write-default"):
            if default := field.find(name):
                _check_default(default, type_.value)
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


# -- default values --------------------------------------------------------------------------------

# Their JSON form: https://iceberg.apache.org/spec/#json-single-value-serialization
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UTC = re.compile(r"(?:Z|[+-]00:00)")
_SECONDS = len("00:00:00")
_PARAMETERS = re.compile(r"[0-9]+")


def _check_default(default: DocumentNode, type_: Any) -> None:
    """Checks a default value of a column of this type, which must be valid."""
    kind = schemas.type_name(type_)
    if kind in _NUMBERS:
        _NUMBERS[kind](default)
        return
    holds = _TEXTS.get(kind)
    if holds is None:
        default.refuse(f"is given, but columns of type {kind} have no default")
    parameters = [int(parameter) for parameter in _PARAMETERS.findall(type_)]
    if not holds(default.text(), parameters):
        default.refuse(f"is not a value of type {type_}")


def _check_float(default: DocumentNode) -> None:
    if not isinstance(default.value, float):
        default.refuse("is not a number with a decimal point")


def _is_decimal(text: str, parameters: list[int]) -> bool:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return False
    digits = match[1] or match[2] or ""
    return len(digits) - int(match[3] or 0) == parameters[1]


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        time.fromisoformat(text[:_SECONDS])
    except ValueError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    day, separator, moment = text.partition("T")
    return bool(separator) and _is_date(day) and _is_time(moment)


def _is_timestamp_with_zone(text: str) -> bool:
    zone = 1 if text.endswith("Z") else len("+00:00")
    return _UTC.fullmatch(text[-zone:]) is not None and _is_timestamp(text[:-zone])


_NUMBERS: Mapping[str, Callable[[DocumentNode], object]] = {
    "boolean": DocumentNode.boolean,
    "int": DocumentNode.integer,
    "long": DocumentNode.long,
    "float": _check_float,
    "double": _check_float,
}
_TEXTS: Mapping[str, Callable[[str, list[int]], bool]] = {
    "decimal": _is_decimal,
    "string": lambda _text, _: True,
    "uuid": lambda text, _: _UUID.fullmatch(text) is not None,
    "date": lambda text, _: _is_date(text),
    "time": lambda text, _: _is_time(text),
    "timestamp": lambda text, _: _is_timestamp(text),
    "timestamp_ns": lambda text, _: _is_timestamp(text),
    "timestamptz": lambda text, _: _is_timestamp_with_zone(text),
    "timestamptz_ns": lambda text, _: _is_timestamp_with_zone(text),
    "binary": lambda text, _: _HEX.fullmatch(text) is not None,
    "fixed": lambda text, size: _HEX.fullmatch(text) is not None and len(text) == 2 * size[0],
}
