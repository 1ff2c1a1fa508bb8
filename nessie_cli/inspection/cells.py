"""The cells of changed rows."""

from __future__ import annotations

from typing import Any


def differ(before: Any, after: Any) -> bool:
    """Returns whether two JSON values of one column differ. 0.0 and -0.0 do, also in lists."""
    return repr(before) != repr(after)
