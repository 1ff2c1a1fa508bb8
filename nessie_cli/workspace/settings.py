"""Settings files in TOML: `.nessie/config.toml` and the user's `config.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.files import read_text


class Settings:
    """A settings file; an absent file is empty. Faults are `InvalidInput` with file and line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._source = read_text(path) or ""
        self._values: Mapping[str, Any] = self._parse() if self._source.strip() else {}

    def _parse(self) -> Mapping[str, Any]:
        plain = _plain_texts(self._source)
        if plain is not None:
            return plain
        import tomllib

        try:
            return tomllib.loads(self._source)
        except tomllib.TOMLDecodeError as error:
            import re

            found = re.search(r"(.*?) \(at line (\d+)", str(error))
            what, line = (
                (found[1], found[2]) if found else (str(error), str(self._source.count("\n") + 1))
            )
            raise InvalidInput(f"{self.path}, line {line}: not TOML: {what}") from None

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
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in found):
            raise self.fault(f"must be a string or an array of strings, not {value!r}", name)
        return found

    def texts(self) -> dict[tuple[str, ...], str]:
        """Returns every value by its tables, as text."""
        found: dict[tuple[str, ...], str] = {}

        def walk(table: Mapping[str, Any], names: tuple[str, ...]) -> None:
            for name, value in table.items():
                if isinstance(value, Mapping):
                    walk(value, (*names, name))
                else:
                    found[(*names, name)] = (
                        ", ".join(map(str, value)) if isinstance(value, list) else str(value)
                    )

        walk(self._values, ())
        return found

    def fault(self, what: str, *names: str) -> InvalidInput:
        """Returns the error for a fault of a setting."""
        return InvalidInput(
            f"{self.path}, line {self._line_of(names[-1])}: {'.'.join(names)} {what}"
        )

    def _line_of(self, name: str) -> int:
        """Returns the first line that looks like the assignment of a name.

        The parser does not tell the line.
        """
        import re

        pattern = re.compile(rf"""\s*(\[.*)?["']?{re.escape(name)}["']?\s*[=.\]]""")
        return next(
            (
                number
                for number, line in enumerate(self._source.splitlines(), 1)
                if pattern.match(line)
            ),
            1,
        )


def _plain_texts(source: str) -> dict[str, str] | None:
    """Returns the values of a file with only lines such as `name = "text"`, or None for others.

    Most settings files are simple, and loading the parser takes longer than everything else.
    """
    found: dict[str, str] = {}
    for line in source.split("\n"):
        name, equals, value = (part.strip(" ") for part in line.partition("="))
        if not line.isprintable():
            return None
        if not name or name.startswith("#"):
            if equals and not name:
                return None
            continue
        bare = name.replace("-", "").replace("_", "")
        text = value[1:-1]
        if (
            name in found
            or not (bare.isascii() and bare.isalnum())
            or value != f'"{text}"'
            or '"' in text
            or "\\" in text
        ):
            return None
        found[name] = text
    return found
