"""Reads batches of operations that people write; reports the first fault of each operation.

pydantic reads the batch as a whole, and `decode` each operation of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, Operation
from nessie_cli.model.progress import Progress, with_progress
from nessie_cli.wire.decode import decode_commit_meta, decode_operation
from nessie_cli.wire.json_text import describe, fault, join, parse_first, parse_json, read_text

T = TypeVar("T")

_MOST_FAULTS = 5
"""The most faults that an error lists."""
_OPERATION = "operation"
"""Stands for the place of an operation, which pydantic knows."""


class _NumberedLine(NamedTuple):
    """A line of JSON lines."""

    number: int
    text: str


class _Reading(NamedTuple):
    """How a batch is read. `counter` is advanced for each operation."""

    allow_unknown: bool
    counter: Iterator[int]


def _refusing(decode: Callable[[Any, ValidationInfo[_Reading]], T]) -> PlainValidator:
    """Returns the validator of a function that raises `InvalidInput`."""

    def validate(value: Any, info: ValidationInfo[_Reading]) -> T:
        try:
            return decode(value, info)
        except InvalidInput as error:
            raise ValueError(error.message) from None

    return PlainValidator(validate)


def _operation(value: Any, info: ValidationInfo[_Reading]) -> Operation:
    # Not in an iterator over the operations: pydantic would take an interrupt there for a fault.
    next(info.context.counter, None)
    if isinstance(value, _NumberedLine):
        try:
            value = parse_json(value.text)
        except InvalidInput as error:
            # Each line is a text of its own.
            raise fault(_OPERATION, error.message.removeprefix("line 1").lstrip(": ")) from None
    operation = decode_operation(value, _OPERATION, allow_unknown=info.context.allow_unknown)
    # pydantic holds the JSON of all operations, which takes several times their memory.
    value.clear()
    return operation


def _meta(value: Any, _: ValidationInfo[_Reading]) -> CommitMeta | None:
    return None if value is None else decode_commit_meta(value)


def _filled(items: Any) -> Any:
    if isinstance(items, list) and items:
        return items
    raise ValueError(
        "is missing"
        if items is None
        else "holds no operation"
        if items == []
        else f"must be a list, not {describe(items)}"
    )


class _Batch(BaseModel):
    """A batch: operations, and metadata that may be missing."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    meta: Annotated[CommitMeta | None, _refusing(_meta)] = Field(None, alias="commitMeta")
    operations: Annotated[
        list[Annotated[Operation, _refusing(_operation)]], BeforeValidator(_filled)
    ]


def decode_batch(
    data: str | bytes, place: str, *, allow_unknown: bool = False, progress: Progress | None = None
) -> tuple[CommitMeta | None, list[Operation]]:
    """Decodes a batch of operations: `{"commitMeta", "operations"}`, a list, or JSON lines.

    The metadata may be missing. `place` names the file in errors. A fault names the index or the
    line of the operation. Duplicate keys are not checked here.
    """
    text = read_text(data, place)
    del data
    document, place_of = _document(text, place)
    del text
    items = document.get("operations")
    numbers = range(len(items) if isinstance(items, list) else 0)
    reading = _Reading(allow_unknown, iter(with_progress(numbers, progress, len(numbers))))
    try:
        batch = _Batch.model_validate(document, context=reading)
    except ValidationError as error:
        faults = [_fault(details, place_of) for details in error.errors(include_url=False)]
        more = f"; and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        raise fault(place, "; ".join(faults[:_MOST_FAULTS]) + more) from None
    return batch.meta, batch.operations


def _document(text: str, place: str) -> tuple[dict[str, Any], Callable[..., str]]:
    """Returns a batch as an object, and a function that names the place of an operation."""
    value, end = parse_first(text, place)
    if isinstance(value, dict) and text[end:].strip() and "operations" not in value:
        lines = [_NumberedLine(*line) for line in enumerate(text.split("\n"), 1) if line[1].strip()]
        return {"operations": lines}, lambda index: f"line {lines[index].number}: "
    if text[end:].strip():
        value = parse_json(text, place)
    if isinstance(value, list):
        return {"operations": value}, lambda *index: join("", *index)
    if isinstance(value, dict) and "type" in value:
        return {"operations": [value]}, lambda _: ""
    if not isinstance(value, dict):
        raise fault(place, f"must be an object, not {describe(value)}")
    return value, lambda *index: join("operations", *index)


def _fault(error: ErrorDetails, place_of: Callable[..., str]) -> str:
    """Returns a fault with its place in the batch."""
    name, *index = error["loc"]
    problem = "is missing" if error["type"] == "missing" else str(error["ctx"]["error"])
    if name != "operations":
        return problem
    where = place_of(*index)
    if not index:
        return fault(where, problem).message
    below = problem.removeprefix(_OPERATION)
    return where + below if where and not where.endswith(" ") else where + below.lstrip(".: ")
