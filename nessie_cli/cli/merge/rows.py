"""Options of merges of rows, and the files in which people decide about rows in conflict."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from nessie_cli.cli.app.input import read_text
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import ContentKey, RowDecision, RowRules, row_key_text
from nessie_cli.render.text import counted

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import SideOptions

_COLUMNS = ("take", "table", "key", "column", "kind", "base", "ours", "theirs")
_MOST_FAULTS = 5


def row_rules(options: SideOptions) -> RowRules | None:
    """Returns how rows are merged, or None without `--rows` and `--whole-rows`.

    Reads the decisions. Raises `InvalidInput` that names the option.
    """
    if not (options.rows or options.whole_rows):
        for name, value in (
            ("--key", options.key),
            ("--rows-ours", options.rows_ours),
            ("--rows-theirs", options.rows_theirs),
            ("--decisions", options.decisions),
            ("--write-decisions", options.write_decisions),
        ):
            if value is not None:
                raise InvalidInput(f"{name} needs --rows or --whole-rows")
        return None
    if options.no_combine:
        raise InvalidInput("--no-combine and --rows cannot be used together")
    ours, theirs = (
        tuple(map(ContentKey.parse, texts or ()))
        for texts in (options.rows_ours, options.rows_theirs)
    )
    if both := set(ours) & set(theirs):
        raise InvalidInput(f"--rows-ours and --rows-theirs both name {min(both)}")
    key = tuple(name.strip() for name in options.key.split(",")) if options.key else ()
    decisions = read_decisions(options.decisions) if options.decisions else ()
    return RowRules(key, options.whole_rows, ours, theirs, tuple(decisions))


# -- files of decisions ---------------------------------------------------------------------------


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


def read_decisions(name: str) -> list[RowDecision]:
    """Returns the decisions in a file, CSV or JSON. Rows without a decision are left out.

    Raises `InvalidInput`, which names the places of the faults.
    """
    text = read_text(name, "--decisions")
    is_json = text.lstrip().startswith("[")
    try:
        entries: Any = json.loads(text) if is_json else list(csv.DictReader(io.StringIO(text)))
        decisions = _DECISIONS.validate_python(entries)
    except ValidationError as error:
        faults = [
            f"entry {fault['loc'][0]}: {'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}"
            for fault in error.errors()
        ]
        more = len(faults) - _MOST_FAULTS
        shown = "; ".join(faults[:_MOST_FAULTS]) + (f"; and {more} more" if more > 0 else "")
        raise InvalidInput(f"--decisions {name}: {shown}") from None
    except (ValueError, csv.Error) as error:
        raise InvalidInput(f"--decisions {name}: {error}") from None
    return [
        RowDecision(each.table, row_key_text(each.key), each.column, each.take == "theirs")
        for each in decisions
        if each.take is not None
    ]


def write_decisions(app: Invocation, name: str | None, error: ReferenceConflict) -> None:
    """Writes the rows in conflict to a file, CSV if its name says so, otherwise JSON.

    Writes none without a name or a row. Raises `InvalidInput` if it cannot be written.
    """
    rows = list(_rows(error)) if name else []
    if not rows or not name:
        return
    if name.endswith(".csv"):
        file = io.StringIO()
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        text = file.getvalue()
    else:
        text = json.dumps(rows, ensure_ascii=False, indent=2) + "\n"
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as fault:
        raise InvalidInput(
            f"--write-decisions {name} cannot be written: {fault.strerror}"
        ) from None
    app.output.note(
        f"{name} has {counted(len(rows), 'row or cell', 'rows and cells')} in conflict: set 'take'"
        f" to ours or theirs, and repeat the command with --decisions {name}"
    )


def _rows(error: ReferenceConflict) -> Iterator[dict[str, Any]]:
    for conflict in error.conflicts:
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
