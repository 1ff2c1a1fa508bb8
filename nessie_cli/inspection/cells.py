"""The cells of changed rows."""

from __future__ import annotations

from typing import Any

from msgspec import json

MOST_CHARACTERS = 120
"""The longest text of a cell."""


def differ(before: Any, after: Any) -> bool:
    """Returns whether two JSON values of one column differ. 0.0 and -0.0 do, also in lists."""
    return repr(before) != repr(after)


def cell_text(value: Any, most: int = MOST_CHARACTERS) -> str:
    """Returns a JSON value as the text of a cell: a text as it is, and long ones cut."""
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.encode(value).decode()
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]}… ({left_out:,} more characters)"
