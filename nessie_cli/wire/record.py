"""Records: structs whose fields are the attributes of a JSON object.

The results of the commands are records. Their JSON (`encode`) and its schema (`schemas`) follow
from the fields: a field `last_change: CommitMeta` is the attribute `lastChange` in the shape of a
commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from msgspec import Struct

from nessie_cli import model
from nessie_cli.wire import commits, contents, documents, entries, references, shapes
from nessie_cli.wire.encode import ENCODERS
from nessie_cli.wire.facts import error_with_facts
from nessie_cli.wire.shape import Attribute, NotRequired, Shape, attributes, is_described, is_shape

INLINE = "inline"
"""Marks a field whose attributes belong to the record itself."""
NOT_JSON = "not JSON"
"""Marks a field that only `show` reads."""
OPTIONAL = NotRequired.__metadata__[0]
"""Marks a field that is left out if it has no value."""

SHAPES: Mapping[Any, Any] = {
    datetime: shapes.Instant,
    model.CommitMeta: commits.CommitMeta,
    model.CommitResult: commits.CommitOutcome,
    model.Content: shapes.Content,
    model.ContentKey: contents.Key,
    model.Entry: entries.Entry,
    model.LogEntry: commits.LogEntry,
    model.MaintenanceReport: documents.Maintenance,
    model.MergeResult: documents.Merge,
    model.Problem: documents.Problem,
    model.Reference: shapes.Reference,
    model.ReflogEntry: references.ReflogEntry,
    model.Tag: references.Tag,
}
"""The shape of each model type."""

ENCODERS[documents.Error] = error_with_facts


class Record(Shape, Struct, frozen=True):
    """The base class of records.

    Modules that define records do not postpone annotations.
    """

    listing: ClassVar[str | None] = None
    """The field of which `--jsonl` prints one line each; None to print the record itself."""

    @classmethod
    def attributes(cls) -> Iterator[Attribute]:
        """Yields the attributes of the JSON object, in the order of the fields."""
        hints = _hints(cls)
        for name in cls.__struct_fields__:
            yield from _attributes(name, hints[name])


def _hints(cls: type) -> dict[str, Any]:
    bases = [base for base in reversed(cls.__mro__) if issubclass(base, Record)]
    return {name: hint for base in bases for name, hint in base.__annotations__.items()}


def _attributes(name: str, hint: Any) -> Iterator[Attribute]:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    if NOT_JSON in marks:
        return
    if INLINE not in marks:
        yield Attribute(_camel(name), name, json_type(hint), OPTIONAL in marks)
        return
    if not is_described(json_type(hint)):
        yield Attribute("", name, json_type(hint), optional=False)
        return
    for inner in attributes(json_type(hint)):
        source = inner.source
        below = f"{name}.{source}" if isinstance(source, str) else _below(name, source)
        yield Attribute(inner.name, below, inner.type, inner.optional)


def _below(name: str, source: Any) -> Any:
    return lambda value: source(getattr(value, name))


def _camel(name: str) -> str:
    first, *others = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def json_type(hint: Any) -> Any:  # noqa: PLR0911 - a table of types
    """Returns the shape, scalar, list, map or union that describes the JSON of a Python type."""
    if get_origin(hint) is Annotated:
        named = next((mark for mark in hint.__metadata__ if not isinstance(mark, str)), None)
        return named if named is not None else json_type(hint.__origin__)
    if hint in SHAPES or is_shape(hint):
        return SHAPES.get(hint, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(str(one.value) for one in hint)]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(NoneType if one is NoneType else json_type(one) for one in inner)]  # noqa: UP007 - made of a tuple
    if origin in (list, tuple, Iterable, Iterator, Sequence):
        return list[json_type(inner[0])]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, json_type(inner[1])]  # type: ignore[misc]
    return hint
