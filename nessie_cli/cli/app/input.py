"""Input files (`-` for stdin) and `NAME=VALUE` arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from nessie_cli.errors import InvalidInput

_LARGEST = 1 << 30
"""The most bytes of an input: a batch of about 800,000 operations. Some devices never end."""


def read_bytes(name: str, option: str) -> bytes:
    """Returns the bytes of a file, or of stdin for `-`.

    Raises `InvalidInput` that names the option and the file, also for one that is too large.
    """
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with open(name, "rb") as file:  # noqa: PTH123 (a user's path is taken as it is)
                data = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{option} {name} cannot be read: {reason}") from None
    if len(data) > _LARGEST:
        raise InvalidInput(f"{option} {name} is larger than {_LARGEST >> 30} GiB")
    return data


def read_text(name: str, option: str) -> str:
    """Returns a file or stdin, as `read_bytes` does, as UTF-8 text."""
    try:
        return read_bytes(name, option).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{option} {name} is not UTF-8 text (byte {error.start})") from None


def pairs(texts: Iterable[str], option: str) -> list[tuple[str, str]]:
    """Parses `NAME=VALUE` arguments. Raises `InvalidInput` if the name or `=` is missing."""
    parsed = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"{option} {text}: write NAME=VALUE")
        parsed.append((name, value))
    return parsed
