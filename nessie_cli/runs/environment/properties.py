"""Files in the format of Java's `Properties`, such as spark-defaults.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """An entry of a file, and its lines as they are in the file."""

    key: str
    value: str
    text: str


def read_properties(text: str) -> Iterator[Property]:
    """Yields the entries of a file in order. Of two entries with one key, the later counts.

    https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html
    """
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        logical, raw = line.lstrip(), [line]
        if not logical or logical[0] in "#!":
            continue
        while _continues(logical) and (following := next(lines, None)) is not None:
            raw.append(following)
            logical = logical[:-1] + following.lstrip()
        entry = _ENTRY.fullmatch(logical)
        if entry and entry[1]:
            # Spark removes white space around values.
            yield Property(_unescaped(entry[1]), _unescaped(entry[2]).strip(), "\n".join(raw))


def property_line(key: str, value: str) -> str:
    """Returns the line of an entry.

    >>> property_line("spark.sql.catalog.lake.uri", "http://127.0.0.1:1/iceberg/run%2Fx")
    'spark.sql.catalog.lake.uri http://127.0.0.1:1/iceberg/run%2Fx'
    """
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # Without the backslash, = or : would end the key.
    separator = " \\" if escaped[:1] in {"=", ":"} else " "
    return f"{key}{separator}{escaped}"


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _CONTROLS.get(escape[2], escape[2])
