"""Options of merges of rows, and the files in which people decide about rows in conflict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.cli.app.input import read_text
from nessie_cli.cli.merge.names import key_and_value
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import ContentKey, RowDecision, RowRules
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.render.text import counted

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import SideOptions


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
    ours, theirs = map(_keys, (options.rows_ours, options.rows_theirs))
    if both := set(ours) & set(theirs):
        raise InvalidInput(f"--rows-ours and --rows-theirs both name {min(both)}")
    key, keys = _row_keys(options.key or ())
    decisions = _read_decisions(options.decisions) if options.decisions else ()
    return RowRules(key, options.whole_rows, ours, theirs, tuple(decisions), keys)


def _row_keys(
    texts: Sequence[str],
) -> tuple[tuple[str, ...], tuple[tuple[ContentKey, tuple[str, ...]], ...]]:
    """Returns the columns of the keys of all tables, and those of single tables."""
    of_tables: dict[ContentKey | None, tuple[str, ...]] = {}
    for text in texts:
        table, columns = key_and_value(text) or (None, text)
        names = tuple(name.strip() for name in columns.split(","))
        if not all(names):
            raise InvalidInput(f"--key {text}: the name of a column is empty")
        if table in of_tables:
            raise InvalidInput(f"--key {text}: the key of {table or 'all tables'} is given twice")
        of_tables[table] = names
    of_all = of_tables.pop(None, ())
    return of_all, tuple((table, names) for table, names in of_tables.items() if table is not None)


def _keys(texts: Sequence[str] | None) -> tuple[ContentKey, ...]:
    for text in texts or ():
        if KeyPattern.parse(text) is not None:
            raise InvalidInput(f"{text} is a glob: --rows-ours and --rows-theirs take keys")
    return tuple(map(ContentKey.parse, texts or ()))


def _read_decisions(name: str) -> list[RowDecision]:
    # pydantic is loaded only with such a file.
    from nessie_cli.wire.row_decisions import decode_row_decisions

    text = read_text(name, "--decisions")
    try:
        return decode_row_decisions(text)
    except InvalidInput as error:
        raise InvalidInput(f"--decisions {name}: {error.message}") from None


def write_decisions(app: Invocation, name: str | None, error: ReferenceConflict) -> None:
    """Writes the rows in conflict to a file, CSV if its name says so, otherwise JSON.

    Writes none without a name or a row. Raises `InvalidInput` if it cannot be written.
    """
    if not name or not any(each.rows for c in error.conflicts for each in c.collisions):
        return
    from nessie_cli.wire.row_decisions import encode_row_conflicts

    text, count = encode_row_conflicts(error.conflicts, as_csv=name.endswith(".csv"))
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as fault:
        raise InvalidInput(
            f"--write-decisions {name} cannot be written: {fault.strerror}"
        ) from None
    app.output.note(
        f"{name} has {counted(count, 'row or cell', 'rows and cells')} in conflict: set 'take' to"
        f" ours or theirs, and repeat the command with --decisions {name}"
    )
