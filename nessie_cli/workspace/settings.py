"""Settings files in TOML: `.nessie/config.toml` and the user's `config.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.toml_text import parse_toml
from nessie_cli.workspace.files import read_text


class SettingsFile:
    """A settings file; an absent file is empty. Faults are `InvalidInput` with file and line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._source = read_text(path) or ""
        self._values: Mapping[str, Any] = self._parse() if self._source.strip() else {}

    def _parse(self) -> Mapping[str, Any]:
        try:
            return parse_toml(self._source)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"(.*?) \(at line (\d+)", str(error))
            fault, line = (
                (place[1], place[2]) if place else (str(error), str(self._source.count("\n") + 1))
            )
            raise InvalidInput(f"{self.path}, line {line}: not TOML: {fault}") from None
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}: {error.message}") from None

    def text(self, *names: str) -> str | None:
        """Returns a text by its tables, or None."""
        value: Any = self._values
        for name in names:
            if not isinstance(value, Mapping):
                raise self.fault("must be a table", *names)
            if name not in value:
                return None
            value = value[name]
        if not isinstance(value, str) or not value.strip():
            raise self.fault(f"must be a string that is not blank, not {value!r}", *names)
        return value

    def texts_of(self, name: str) -> list[str]:
        """Returns the texts of a setting that may be an array; none if it is not set."""
        value = self._values.get(name, [])
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise self.fault(f"must be a string or an array of strings, not {value!r}", name)
        return texts

    def texts(self) -> dict[tuple[str, ...], str]:
        """Returns every value by its tables, as text."""
        return {
            names: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            for names, value in _values_of(self._values)
        }

    def check(self) -> None:
        """Raises `InvalidInput` for a value that is neither a string nor an array of strings."""
        for names, value in _values_of(self._values):
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str) for text in texts):
                raise self.fault(f"must be a string or an array of strings, not {value!r}", *names)

    def fault(self, text: str, *names: str) -> InvalidInput:
        """Returns the error for a fault of a setting."""
        return InvalidInput(
            f"{self.path}, line {self._line_of(names[-1])}: {'.'.join(names)} {text}"
        )

    def _line_of(self, name: str) -> int:
        """Returns the first line that looks like the assignment of a name.

        The parser does not tell the line.
        """
        pattern = re.compile(rf"""\s*(\[.*)?["']?{re.escape(name)}["']?\s*[=.\]]""")
        return next(
            (
                number
                for number, line in enumerate(self._source.splitlines(), 1)
                if pattern.match(line)
            ),
            1,
        )


def _values_of(
    table: Mapping[str, Any], names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the values of a table and the tables in it, each with its names."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _values_of(value, (*names, name))
        else:
            yield (*names, name), value
