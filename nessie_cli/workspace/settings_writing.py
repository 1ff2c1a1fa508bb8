"""Changing a settings file: one value at a time, everything else in it, comments included, stays as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.workspace.files import locked, read_text, replace_text
from nessie_cli.workspace.settings import Settings


def change(path: Path, lock: Path, names: Sequence[str], value: str | None) -> None:
    """Set one text by the tables it stands in, or with None remove it; tables that are left empty go as well.

    Raises `InvalidInput` for a file that is no TOML (nothing is written then) and `StoreUnavailable` where it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{path.parent}: cannot be made: {error.strerror}") from None
    with locked(lock):
        # Faults of the file are told by the reader, with their line.
        Settings(path)
        replace_text(path, changed(read_text(path) or "", names, value, path))


def changed(source: str, names: Sequence[str], value: str | None, path: Path) -> str:
    """The text of a settings file with one value set or removed."""
    import tomlkit

    document = tomlkit.parse(source)
    tables: list[Any] = [document]
    for name in names[:-1]:
        if name not in tables[-1]:
            if value is None:
                return source
            # The outer one of two new tables gets no heading of its own.
            tables[-1][name] = tomlkit.table(is_super_table=len(tables) < len(names) - 1)
        tables.append(tables[-1][name])
        if not isinstance(tables[-1], dict):
            raise InvalidInput(f"{path}: {name} must be a table")
    if value is None:
        tables[-1].pop(names[-1], None)
        _drop_empty(tables, names)
    else:
        tables[-1][names[-1]] = value
    return tomlkit.dumps(document)


def _drop_empty(tables: Sequence[Any], names: Sequence[str]) -> None:
    for outer, inner, name in reversed(list(zip(tables, tables[1:], names, strict=False))):
        if not inner:
            del outer[name]
