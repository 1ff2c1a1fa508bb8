"""Files in which people decide about rows in conflict, as CSV or JSON.

The report of a merge writes such a file. People set `take` in it, and a later merge reads it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Conflict, ContentKey, RowDecision, row_key_text

_COLUMNS = ("take", "table", "key", "column", "kind", "base", "ours", "theirs")
_MOST_FAULTS = 5


def _key_of(value: Any) -> ContentKey:
    try:
        return ContentKey.parse(value)
    except (InvalidInput, AttributeError, TypeError) as error:
        raise ValueError(str(error)) from None


class _Decision(BaseModel):
    """A row or cell in conflict, as `--write-decisions` writes it: `take` is the decision."""

    model_config = ConfigDict(extra="ignore")

    take: Literal["ours", "theirs"] | None = None
    table: Annotated[ContentKey, PlainValidator(_key_of)]
    key: dict[str, Any]
    column: str | None = None

    @field_validator("take", "column", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("key", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value


_DECISIONS = TypeAdapter(list[_Decision])


def decode_row_decisions(text: str) -> list[RowDecision]:
    """Returns the decisions in a text, CSV or JSON. Rows without a decision are left out.

    Raises `InvalidInput`, which names the places of the faults.
    """
    # Spreadsheets begin UTF-8 with a mark.
    text = text.removeprefix("\ufeff")
    is_json = text.lstrip().startswith("[")
    try:
        entries: Any = json.loads(text) if is_json else _lines(text)
        decisions = _DECISIONS.validate_python(entries)
    except ValidationError as error:
        raise InvalidInput(_faults(error)) from None
    except RecursionError:
        raise InvalidInput("the JSON is nested too deeply") from None
    except (ValueError, csv.Error) as error:
        raise InvalidInput(str(error)) from None
    taken: dict[tuple[ContentKey, str, str | None], bool] = {}
    for number, each in enumerate(decisions):
        if each.take is None:
            continue
        place, is_theirs = (each.table, row_key_text(each.key), each.column), each.take == "theirs"
        if taken.setdefault(place, is_theirs) != is_theirs:
            raise InvalidInput(f"entry {number}: take: another entry takes the other side")
    return [RowDecision(*place, is_theirs) for place, is_theirs in taken.items()]


def _lines(text: str) -> list[dict[str, Any]]:
    """Returns the lines of CSV. Spreadsheets of some countries write semicolons."""
    head = text.partition("\n")[0]
    separator = ";" if head.count(";") > head.count(",") else ","
    reader = csv.DictReader(io.StringIO(text), delimiter=separator)
    for name in ("take", "table", "key"):
        if name not in (reader.fieldnames or ()):
            raise InvalidInput(f"the first line names no column '{name}'")
    return list(reader)


def encode_row_conflicts(conflicts: Iterable[Conflict], *, as_csv: bool) -> tuple[str, int]:
    """Returns the text of a file for decisions about the rows in conflict, and their number."""
    rows = list(_rows(conflicts))
    if not as_csv:
        return json.dumps(rows, ensure_ascii=False, indent=2) + "\n", len(rows)
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return file.getvalue(), len(rows)


def _faults(error: ValidationError) -> str:
    faults = [
        f"entry {fault['loc'][0]}: {'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}"
        for fault in error.errors()
    ]
    more = len(faults) - _MOST_FAULTS
    return "; ".join(faults[:_MOST_FAULTS]) + (f"; and {more} more" if more > 0 else "")


def _rows(conflicts: Iterable[Conflict]) -> Iterator[dict[str, Any]]:
    for conflict in conflicts:
        for collision in conflict.collisions:
            for row in collision.rows:
                yield {
                    "take": None,
                    "table": str(conflict.key),
                    "key": dict(row.key),
                    "column": row.column,
                    "kind": row.kind.value,
                    "base": row.base,
                    "ours": row.ours,
                    "theirs": row.theirs,
                }


def _cell(value: Any) -> Any:
    """Returns a value as a cell of CSV: texts as they are, null empty, everything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return row_key_text(value) if isinstance(value, dict) else json.dumps(value)
