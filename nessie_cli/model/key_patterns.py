"""Globs of content keys: `db.*`.

`*` stands for any characters and `?` for one. Both also match the dots between elements. A quoted
element has no wildcards: `db."a*"` is one key.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.model.keys import ContentKey
from nessie_cli.model.results import KeyRange

if TYPE_CHECKING:
    from collections.abc import Sequence

_WILDCARDS = frozenset("*?")
_BETWEEN = "\0"
"""Joins elements for matching. No element contains this character."""


class KeyPattern(NamedTuple):
    """A glob of keys."""

    text: str
    glob: str
    prefix: ContentKey | None
    """The elements before the first wildcard."""

    @classmethod
    def parse(cls, text: str) -> KeyPattern | None:
        """Parses a glob. Returns None for a key without wildcards.

        Raises `InvalidInput` if the text is neither a key nor a glob.
        """
        elements = ContentKey.parse(text).elements
        if not _WILDCARDS & set(text):
            return None
        # A quoted element has no wildcards, so it is parsed as an element of a key.
        quoted = [element.startswith('"') for element in re.findall(r'"(?:[^"]|"")*"|[^."]+', text)]
        plain = [
            is_quoted or not _WILDCARDS & set(element)
            for element, is_quoted in zip(elements, quoted, strict=True)
        ]
        if all(plain):
            return None
        before = elements[: plain.index(False)]
        globs = (
            _escaped(element) if is_plain else element.replace("[", "[[]")
            for element, is_plain in zip(elements, plain, strict=True)
        )
        return cls(text, _BETWEEN.join(globs), ContentKey(before) if before else None)

    @property
    def keys(self) -> KeyRange:
        """The range of keys that the glob can match."""
        return KeyRange(prefix=self.prefix)

    def matches(self, key: ContentKey) -> bool:
        """Whether the glob matches a key."""
        return fnmatchcase(_BETWEEN.join(key.elements), self.glob)

    def matches_above(self, key: ContentKey) -> bool:
        """Whether the glob matches a key or a parent of it."""
        return self.matches_name(key.elements)

    def matches_name(self, elements: Sequence[str]) -> bool:
        """Does what `matches_above` does for elements that need not be a valid key."""
        return any(
            fnmatchcase(_BETWEEN.join(elements[:count]), self.glob)
            for count in range(1, len(elements) + 1)
        )


def _escaped(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)
