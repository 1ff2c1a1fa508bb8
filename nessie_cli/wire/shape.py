"""The definition of JSON shapes: a class whose annotations are its attributes.

`shapes`, `documents`, `rest` and `bodies` contain the definitions. Encoders (`encode`), validation
(`guards`) and JSON Schemas (`schemas`) are derived from them. The classes are never instantiated:
they describe the JSON of the values in `model`. This module loads nothing heavy, because every
command encodes something.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from msgspec import Struct

T = TypeVar("T")

_MAY_BE_MISSING = "may be missing"
NotRequired = Annotated[T, _MAY_BE_MISSING]
"""An attribute that is left out if it has no value: null, or an empty list or map."""


class Shape:
    """An object of JSON. A trailing underscore is not part of an attribute's name (`from_`)."""

    is_open: ClassVar[bool] = False
    """Whether answers have attributes that the shape does not list."""


SCALARS: dict[Any, dict[str, Any]] = {}
"""The rules of scalar types in terms of JSON Schema.

Those with a description have a definition of their own.
"""


class OneOf:
    """One of several shapes; the attribute `type` selects it."""

    shapes: ClassVar[tuple[type[Shape | Struct], ...]]


class _Source(Struct):
    """Where the value of an attribute comes from."""

    of: str | Callable[[Any], Any]


def of(source: str | Callable[[Any], Any]) -> Any:
    """The source of an attribute: the name of a field, or a function of the value.

    Without it, the field has the attribute's name in snake case.
    """
    return _Source(source)


class Attribute(Struct, frozen=True):
    """An attribute of a shape: JSON name, source, type, and whether it may be missing.

    Without a name, it is a struct whose attributes belong to the shape itself.
    """

    name: str
    source: str | Callable[[Any], Any]
    type: Any
    optional: bool


@cache
def attributes(shape: Any) -> tuple[Attribute, ...]:
    """The attributes of a shape, those of its base classes first."""
    if hasattr(shape, "attributes"):
        return tuple(shape.attributes())
    return tuple(_attribute(shape, name, kind) for name, kind in _annotations(shape).items())


def _annotations(shape: type) -> dict[str, Any]:
    """The annotations of a shape and its base classes.

    Modules that define shapes do not postpone them.
    """
    inherited = [
        _annotations(base)
        for base in shape.__bases__
        if issubclass(base, Shape) and base is not Shape
    ]
    return {
        name: kind for found in (*inherited, shape.__annotations__) for name, kind in found.items()
    }


def _attribute(shape: type, name: str, hint: Any) -> Attribute:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    source = getattr(shape, name, None)
    json_name = name.rstrip("_")
    return Attribute(
        json_name,
        source.of if isinstance(source, _Source) else snake(json_name),
        hint.__origin__ if marks else NoneType if hint is None else hint,
        _MAY_BE_MISSING in marks,
    )


def snake(name: str) -> str:
    """A camel-case name in snake case."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# -- types of attributes ---------------------------------------------------------------------------


def without_null(kind: Any) -> tuple[Any, bool]:
    """A type without null, and whether it allows null. The type is None if nothing else is left."""
    if kind is NoneType:
        return None, True
    if get_origin(kind) in (Union, UnionType):
        kinds = tuple(one for one in get_args(kind) if one is not NoneType)
        return (kinds[0] if len(kinds) == 1 else Union[kinds]), len(kinds) < len(get_args(kind))  # noqa: UP007 - made of a tuple
    return kind, False


def plain(kind: Any) -> Any:
    """The Python type of a scalar type."""
    return getattr(kind, "__supertype__", kind)


def is_shape(kind: Any) -> bool:
    """Whether a type is an object of JSON."""
    return isinstance(kind, type) and issubclass(kind, Shape | Struct)


def is_described(kind: Any) -> bool:
    """Whether a type is a `Shape`, not a struct that msgspec describes."""
    return isinstance(kind, type) and issubclass(kind, Shape)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The types that a union consists of; an empty tuple for any other type."""
    if isinstance(kind, type) and issubclass(kind, OneOf):
        return kind.shapes
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def constant(kind: Any) -> tuple[Any, ...]:
    """The only value of a type, in a tuple; an empty tuple if it has several."""
    if kind is NoneType:
        return (None,)
    return get_args(kind) if get_origin(kind) is Literal and len(get_args(kind)) == 1 else ()
