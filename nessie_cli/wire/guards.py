"""Validation of input: pydantic models derived from the shapes, and faults as one line.

Models are strict: a text is not a number, true is not a number, a number with a fraction is not an
integer. Unknown attributes are ignored unless the shape rejects them. The classes of `model` check
how values fit together.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.shape import (
    SCALARS,
    Attribute,
    alternatives,
    attributes,
    constant,
    is_shape,
    plain,
    without_null,
)

JsonObject = dict[str, Any]
MOST_ITEMS = 100_000
"""The most items of a map, a list of texts, or a list that may be empty, in a request."""


class Guard(BaseModel):
    """The base of the models: names in JSON are camel case, and nothing is converted."""

    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel)


class _Closed(Guard):
    model_config = ConfigDict(extra="forbid")


@cache
def guard_of(shape: Any) -> type[Guard]:
    """Returns the model of a shape in a request.

    Attributes that can be null may be missing. Like the original server, null is read as an empty
    list or map.
    """
    base = _Closed if shape.rejects_unknown else Guard
    fields: dict[str, Any] = {
        one.field: _field(one) for one in attributes(shape) if not constant(one.type)
    }
    return create_model(shape.__name__, __base__=base, **fields)


def _field(one: Attribute) -> Any:
    """Returns type and default of an attribute of a request."""
    kind, nullable = without_null(one.type)
    checked = _checked(kind)
    if get_origin(kind) is dict and get_args(kind)[1] is not Any:
        return _map_field(one, checked, nullable=nullable)
    if checked == list[str]:
        checked = Annotated[checked, BeforeValidator(_bounded)]
    if one.filled:
        checked = Annotated[checked, Field(min_length=1)]
    if nullable or one.optional:
        return checked | None, Field(None, alias=one.name)
    if get_origin(kind) is list and not one.filled:
        items = tuple[_checked(get_args(kind)[0]), ...]  # type: ignore[misc, valid-type]
        return Annotated[items, BeforeValidator(_tuple)], Field((), alias=one.name)
    return checked, Field(alias=one.name)


def _map_field(one: Attribute, checked: Any, *, nullable: bool) -> Any:
    if nullable:
        return Annotated[checked | None, BeforeValidator(_map_or_empty_list)], Field(
            None, alias=one.name
        )
    return Annotated[checked, BeforeValidator(_map)], Field(default_factory=dict, alias=one.name)


def _tuple(value: Any) -> Any:
    """Converts a list to the tuple of a frozen value."""
    return () if value is None else tuple(_bounded(value)) if isinstance(value, list) else value


def _map(value: Any) -> Any:
    return {} if value is None else _bounded(value)


def _map_or_empty_list(value: Any) -> Any:
    """Reads an empty list as empty commit properties, like the original server."""
    return {} if value == [] and is_lenient() else _bounded(value)


def _bounded(value: Any) -> Any:
    """Refuses a long list or map: a model would read all of it in one call."""
    if isinstance(value, (list, dict)) and len(value) > MOST_ITEMS:
        raise ValueError(f"has more than {MOST_ITEMS:,} items")
    return value


def _checked(kind: Any) -> Any:
    """Returns the type that pydantic checks.

    For one of several shapes, or a shape whose faults name its own attributes, that is any object.
    """
    if get_origin(kind) is list:
        return list[_checked(get_args(kind)[0])]  # type: ignore[misc]
    if get_origin(kind) is dict:
        return dict[str, _checked(get_args(kind)[1])]  # type: ignore[misc]
    if alternatives(kind) or is_shape(kind):
        return guard_of(kind) if is_shape(kind) and not kind.rejects_unknown else JsonObject
    bounds = SCALARS.get(kind, {})
    if "maximum" in bounds:
        return Annotated[int, Field(ge=bounds["minimum"], le=bounds["maximum"])]
    return str if get_origin(kind) is Literal else Any if kind is None else plain(kind)


# -- faults ----------------------------------------------------------------------------------------

_MUST_BE: Mapping[str, str] = {
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}

G = TypeVar("G", bound=Guard)


def check(guard: type[G], data: Any, path: str) -> G:
    """Returns a model from a JSON value. Raises `InvalidInput` with the first fault."""
    try:
        return guard.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=True)
    if is_lenient() and (coerced := coerce(data, faults)) is not None:
        return check(guard, coerced, path)
    first = faults[0]
    raise fault(join(path, *first["loc"]), _problem(first, guard))


def _problem(error: ErrorDetails, guard: type[Guard]) -> str:
    kind, value = error["type"], error["input"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = sorted(str(field.alias) for field in guard.model_fields.values())
        return f"is not a known attribute ({', '.join(known)})"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"is out of range: {describe(value)} does not fit into {_bits(error)} bits"
    if kind in _MUST_BE:
        return f"{_MUST_BE[kind]}, not {describe(value)}"
    return error["msg"].removeprefix("Value error, ")


def _bits(error: ErrorDetails) -> int:
    bound: int = next(iter(error["ctx"].values()))
    return 64 if abs(bound) > 2**32 else 32


# -- leniency --------------------------------------------------------------------------------------
#
# The original server converts JSON scalars, and its clients rely on that: `"17"` and `1.5` are
# integers (17 and 1), null is the number 0, numbers and truth values are texts, numbers and texts
# are truth values. Only a value that a model has refused is converted and checked once more, so
# values that pass at once cost nothing.

_LENIENT: ContextVar[bool] = ContextVar("lenient", default=False)
_REFUSED = object()
_NUMBER = re.compile(r"[+-]?\d{1,30}")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class lenient:  # noqa: N801 - used as a function that gives a context is
    """Decodes within the block like the original server."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _LENIENT.set(True)

    def __exit__(self, *_: object) -> None:
        _LENIENT.reset(self._token)


def is_lenient() -> bool:
    """Returns whether scalars are converted here."""
    return _LENIENT.get()


def coerce(data: Any, faults: Sequence[ErrorDetails]) -> Any:
    """Returns a copy of the JSON with refused scalars converted, or None if one cannot be."""
    copy = data
    for found in faults:
        convert = _CONVERSIONS.get(found["type"])
        value = _REFUSED if convert is None else convert(found["input"])
        if value is _REFUSED or not found["loc"]:
            return None
        copy = _replaced(copy, found["loc"], value)
    return copy


def _replaced(data: Any, path: Sequence[int | str], value: Any) -> Any:
    """Returns a copy of a JSON value with another value at a path."""
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = _replaced(data[path[0]], path[1:], value)
    return copy


def _whole_number(value: Any) -> Any:
    if value is None or value == "":
        return 0
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(value)
    return _REFUSED


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else _REFUSED


def _truth(value: Any) -> Any:
    if isinstance(value, int):
        return value != 0
    return _TRUTH.get(value.strip(), _REFUSED) if isinstance(value, str) else _REFUSED


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "int_type": _whole_number,
    "int_from_float": _whole_number,
    "string_type": _text,
    "bool_type": _truth,
}
"""Converters by the name of the fault in pydantic."""
