"""Text in CEL, the language of filters."""

from __future__ import annotations


def cel_text(text: str) -> str:
    """Returns a text as a CEL string."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
