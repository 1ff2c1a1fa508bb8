"""Content keys: the dotted path that names a table, view or namespace in the catalog."""

from __future__ import annotations

import re

from msgspec import Struct

from nessie_cli.errors import InvalidInput

MAX_ELEMENTS = 20
MAX_LENGTH = 500
"""Limits of the specification; the length is the sum over the elements in UTF-16 units."""

_QUOTED = r'"((?:[^"]|"")*)"'
# A compiled pattern at module level would cost every command's start-up; `re` keeps what a function
# has compiled.


def _needs_quotes(element: str) -> bool:
    return not element.isidentifier() and any(c in '."*?' or c.isspace() for c in element)


class ContentKey(Struct, frozen=True, order=True, gc=False):
    """The path of a content, outermost element first.

    Keys are ordered element by element, a prefix before its extensions.

    Text form: elements joined with dots. An element with a dot, a double quote, white space or a
    wildcard (`*`, `?`) is quoted as SQL does.

    >>> str(ContentKey(("db", "order.lines")))
    'db."order.lines"'
    >>> ContentKey.parse('db."order.lines"').elements
    ('db', 'order.lines')
    """

    elements: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a key that the specification does not allow."""
        elements = self.elements
        if len(elements) > MAX_ELEMENTS:
            raise InvalidInput(
                f"Key '{'.'.join(elements)}' has {len(elements)} elements,"
                f" max allowed number of elements: {MAX_ELEMENTS}"
            )
        joined = "".join(elements)
        # A UTF-16 unit count is never below the code point count and at most twice it; only long
        # keys pay for the exact one.
        if (
            2 * len(joined) > MAX_LENGTH
            and len(joined.encode("utf-16-le", "surrogatepass")) > 2 * MAX_LENGTH
        ):
            raise InvalidInput(f"Content key too long, max allowed length: {MAX_LENGTH}")
        if not all(elements):
            raise InvalidInput(
                f"Content key '[{', '.join(elements)}]' must not contain an empty element"
            )
        if not joined.isprintable() and any(c < " " or c == "\x7f" for c in joined):
            characters = "the character 0x7F" if "\x7f" in joined else "characters less than 0x20"
            raise InvalidInput(f"Content key {list(elements)!r} must not contain {characters}")
        if not joined.isascii():
            try:
                joined.encode()
            except UnicodeEncodeError:
                raise InvalidInput(
                    f"Content key {list(elements)!r} is not valid Unicode text"
                ) from None

    @classmethod
    def parse(cls, text: str) -> ContentKey:
        """Returns the key of a text form. Raises `InvalidInput` that names the position."""
        elements: list[str] = []
        position = 0
        while True:
            if text.startswith('"', position):
                match = re.compile(_QUOTED).match(text, position)
                if not match:
                    raise InvalidInput(
                        f"key {text!r}: the quote at position {position + 1} is not closed"
                    )
                elements.append(match[1].replace('""', '"'))
                position = match.end()
            else:
                end = text.find(".", position)
                end = len(text) if end < 0 else end
                element = text[position:end]
                if '"' in element:
                    raise InvalidInput(
                        f"key {text!r}: a quote in the middle of an element;"
                        " write the whole element in quotes"
                    )
                elements.append(element)
                position = end
            if not elements[-1]:
                raise InvalidInput(f"key {text!r}: an element is empty (position {position + 1})")
            if position == len(text):
                return cls(tuple(elements))
            if text[position] != ".":
                raise InvalidInput(f"key {text!r}: a dot is expected at position {position + 1}")
            position += 1

    def __str__(self) -> str:
        """The text form; `parse` gives the key back."""
        return ".".join(
            '"' + e.replace('"', '""') + '"' if _needs_quotes(e) else e for e in self.elements
        )

    @property
    def plain(self) -> str:
        """The elements joined with dots, without quotes, as in messages of the REST API."""
        return ".".join(self.elements)

    @property
    def parent(self) -> ContentKey | None:
        """The key of the parent namespace; None for a key of one element."""
        return ContentKey(self.elements[:-1]) if len(self.elements) > 1 else None

    def starts_with(self, prefix: ContentKey) -> bool:
        """Returns whether this is `prefix` or lies below it, compared by elements."""
        return self.elements[: len(prefix.elements)] == prefix.elements
