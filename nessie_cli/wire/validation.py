"""Checks JSON values against msgspec structs. A fault is one line that names its place.

Nothing is converted: a text is not a number, true is not a number, a number with a fraction is not
an integer. Unknown attributes are ignored unless the struct forbids them. Null is read as an empty
list or map. The classes of `model` check how values fit together.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert, inspect

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.json_text import describe, fault, join

S = TypeVar("S", bound=Struct)


def checked(struct: type[S], data: Any, path: str) -> S:
    """Returns the struct of a JSON value. Raises `InvalidInput` with the first fault."""
    try:
        return convert(data, struct)
    except ValidationError as error:
        refusal = str(error)
    # Only a value that was refused is converted, so that valid ones cost nothing.
    with suppress(ValidationError):
        return convert(_converted(_type_of(struct), data), struct)
    raise _refused(refusal, struct, data, path)


# -- faults ----------------------------------------------------------------------------------------

_NAMES: Mapping[str, str] = {
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_TYPES: Mapping[type, str] = {
    bool: "bool",
    dict: "object",
    float: "float",
    int: "int",
    list: "array",
    str: "str",
    type(None): "null",
}
_WRONG_TYPE = re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`")
_OUT_OF_RANGE = re.compile(r"Expected `int` [<>]= -?(\d+)")
_TOO_MANY = re.compile(r"Expected `(?:array|object)` of length <= (\d+)")
_ATTRIBUTE = re.compile(r"Object (missing required|contains unknown) field `(.*)`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_BITS_32 = 10
"""The most digits of a number of 32 bits."""


def _refused(refusal: str, struct: type[Struct], data: Any, path: str) -> InvalidInput:
    """Returns the error for a refusal of msgspec, in our words."""
    # The last one: the name of an unknown attribute, which may be anything, comes before it.
    problem, at, place = refusal.rpartition(" - at `")
    problem = problem if at else refusal
    steps = [name or step for name, step in _STEP.findall(place.rstrip("`"))]
    if attribute := _ATTRIBUTE.fullmatch(problem):
        steps.append(attribute[2])
        known_names = ", ".join(sorted(struct.__struct_encode_fields__))
        names = f" ({known_names})" if len(steps) == 1 else ""
        problem = "is missing" if "missing" in attribute[1] else f"is not a known attribute{names}"
        return fault(join(path, *_named(steps)), problem)
    wrong = _WRONG_TYPE.fullmatch(problem)
    parts, value = next(_values(data, steps, wrong[2] if wrong else None), (_named(steps), None))
    if wrong:
        problem = f"must be {_NAMES.get(wrong[1], wrong[1])}, not {describe(value)}"
    elif bound := _OUT_OF_RANGE.fullmatch(problem):
        bits = 32 if len(bound[1]) <= _BITS_32 else 64
        problem = f"is out of range: {describe(value)} does not fit into {bits} bits"
    elif problem.endswith("of length >= 1"):
        problem = "must not be empty"
    elif most := _TOO_MANY.fullmatch(problem):
        problem = f"has more than {int(most[1]):,} items"
    return fault(join(path, *parts), problem)


def _named(steps: Sequence[str]) -> list[str | int]:
    """Returns the steps of a place, positions in lists as numbers."""
    return [int(step) if step.isdecimal() else step for step in steps]


def _values(data: Any, steps: Sequence[str], kind: str | None) -> Iterator[tuple[list[Any], Any]]:
    """Yields the values of a type at a place, each with its steps.

    msgspec leaves names in maps out (`...`). The first value of the refused type is the refused
    one, because it reads maps in their order.
    """
    if not steps:
        if kind in (None, _TYPES.get(type(data))):
            yield [], data
        return
    step = steps[0]
    names: Sequence[Any] = list(data) if step == "..." else _named([step])
    for name in names:
        with suppress(LookupError, TypeError):
            for parts, value in _values(data[name], steps[1:], kind):
                yield [name, *parts], value


# -- leniency --------------------------------------------------------------------------------------
#
# The original server converts JSON scalars, and its clients rely on that: `"17"` and `1.5` are
# integers (17 and 1), null is the number 0, numbers and truth values are texts, numbers and texts
# are truth values.

_LENIENT: ContextVar[bool] = ContextVar("lenient", default=False)
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


@cache
def _type_of(struct: type[Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _converted(kind: inspect.Type, value: Any) -> Any:  # noqa: PLR0911 - a table of types
    """Returns a JSON value with its parts converted to a type; those that cannot be are kept."""
    match kind:
        case inspect.Metadata(type=inner):
            return _converted(inner, value)
        case inspect.UnionType(types=types):
            inner = next(member for member in types if not isinstance(member, inspect.NoneType))
            if value == [] and is_lenient() and isinstance(inner, inspect.DictType):
                return {}  # the original server reads a list as no commit properties
            return None if value is None else _converted(inner, value)
        case inspect.ListType(item_type=item):
            items = [] if value is None else value
            return (
                [_converted(item, element) for element in items]
                if isinstance(items, list)
                else value
            )
        case inspect.DictType(value_type=item):
            is_any = isinstance(item, inspect.AnyType)
            pairs = {} if value is None and not is_any else value
            return _converted_map(pairs, dict.fromkeys(pairs, item)) if _is_map(pairs) else value
        case inspect.StructType(fields=fields):
            types_ = {field.encode_name: field.type for field in fields}
            return _converted_map(value, types_) if _is_map(value) else value
    return _scalar(kind, value) if is_lenient() else value


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _converted_map(value: Any, types: Mapping[str, inspect.Type]) -> Any:
    return {
        name: _converted(types[name], item) if name in types else item
        for name, item in value.items()
    }


def _scalar(kind: inspect.Type, value: Any) -> Any:
    match kind:
        case inspect.IntType():
            return _whole_number(value)
        case inspect.StrType():
            return json.dumps(value) if isinstance(value, bool | int | float) else value
        case inspect.BoolType():
            return _truth(value)
    return value


def _whole_number(value: Any) -> Any:
    if value is None or value == "":
        return 0
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(value)
    return value


def _truth(value: Any) -> Any:
    if isinstance(value, int):
        return value != 0
    return _TRUTH.get(value.strip(), value) if isinstance(value, str) else value
