"""Text of a catalog for people: hidden characters, hashes and names of persons.

Stored data is written by others. A commit message or a key may contain escape sequences or
direction marks that repaint or disguise text, so every front end makes them visible.
"""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, direction marks, invisible fillers, tag
# characters, halves of surrogate pairs. The joiners U+200C and U+200D stay: Persian, Indic scripts
# and emoji need them.
_HIDDEN = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE = 0x100
_PLANE = 0x10000


def visible(text: str) -> str:
    r"""Escapes invisible characters and those that control a terminal.

    The result is one line. Applying it twice is harmless.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return text if text.isprintable() else re.sub(_HIDDEN, _escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    return _NAMED.get(char) or (
        f"\\x{code:02x}"
        if code < _BYTE
        else f"\\u{code:04x}"
        if code < _PLANE
        else f"\\U{code:08x}"
    )


SHORT_HASH = 12
"""The digits of a hash for people."""


def short_hash(value: str) -> str:
    """Returns an abbreviated hash."""
    return value[:SHORT_HASH]


def name_of(person: str) -> str:
    """Returns the name of a person, without the address unless there is nothing else.

    >>> name_of("Eva <eva@example.org>"), name_of("etl@example.org")
    ('Eva', 'etl@example.org')
    """
    return person.partition(" <")[0] or person
