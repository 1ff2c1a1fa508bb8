"""A text that must not be seen."""

from __future__ import annotations


class Secret:
    """A password or token: no representation, message or traceback shows it; who sends it asks for it by `reveal`.

    >>> Secret("s3cret")
    Secret(...)
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"
