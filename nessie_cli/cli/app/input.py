"""Files that an option names, `-` for stdin, and the small forms that options have."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from nessie_cli.errors import InvalidInput


def read_bytes(name: str, option: str) -> bytes:
    """The bytes of a file, or of stdin for `-`; raises `InvalidInput` that names the option and the file."""
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as file:  # noqa: PTH123 (a user's path is taken as it is)
            return file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{option} {name}: cannot be read: {reason}") from None


def read_text(name: str, option: str) -> str:
    """The same as text in UTF-8."""
    try:
        return read_bytes(name, option).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{option} {name}: is not UTF-8 text (byte {error.start})") from None


def pairs(texts: Iterable[str], option: str) -> list[tuple[str, str]]:
    """`name=value` texts taken apart; raises `InvalidInput` for one without a name or `=`."""
    found = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"{option} {text}: write NAME=VALUE")
        found.append((name, value))
    return found
