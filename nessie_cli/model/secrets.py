"""A text that must not be shown."""

from __future__ import annotations


class Secret:
    """A password or token that no representation, message or traceback shows.

    >>> Secret("s3cret")
    Secret(...)
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Returns the text."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"
