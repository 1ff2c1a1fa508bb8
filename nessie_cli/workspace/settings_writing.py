"""Changes one value of a settings file; the rest, comments included, stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.workspace.files import locked, read_text, replace_text
from nessie_cli.workspace.settings import SettingsFile


def change(path: Path, lock: Path, names: Sequence[str], value: str | None) -> None:
    """Sets or removes (None) a text by its tables.

    A table that becomes empty is removed, unless it contains comments. Raises `InvalidInput` for a
    file that is not TOML (nothing is written then) and `StoreUnavailable` if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{path.parent} cannot be made: {error.strerror}") from None
    with locked(lock):
        # The reader reports faults of the file with their line.
        SettingsFile(path)
        replace_text(path, changed(read_text(path) or "", names, value, path))


def changed(source: str, names: Sequence[str], value: str | None, path: Path) -> str:
    """Returns the text of a settings file with one value set or removed."""
    import tomlkit

    document = tomlkit.parse(source)
    tables: list[Any] = [document]
    for name in names[:-1]:
        if name not in tables[-1]:
            if value is None:
                return source
            # The outer of two new tables gets no heading.
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
        if not inner and not inner.as_string().strip():
            del outer[name]
