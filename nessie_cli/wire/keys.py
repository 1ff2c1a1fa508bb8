"""Content keys in paths and queries of URLs: three encodings to one text, one decoder for all of them (reference 4.2).

These are texts before percent-encoding; percent-decode a URL segment first. The command line's own form of a key (`str(key)`) is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

_DOT_IN_LEGACY: Final = "\x1d"
_ESCAPES: Final = {".": ".", "*": "*", "/": "{", "\\": "}", "%": "["}
"""What stands behind the `*` for each escaped character."""
_UNESCAPED: Final = {code: char for char, code in _ESCAPES.items()}
_ESCAPED_TABLE: Final = str.maketrans({char: f"*{code}" for char, code in _ESCAPES.items()})
_CANONICAL_TABLE: Final = str.maketrans({".": "*.", "*": "**"})


def encode_legacy(key: ContentKey) -> str:
    """For servers below specification 2.2: a dot within an element becomes U+001D."""
    return ".".join(element.replace(".", _DOT_IN_LEGACY) for element in key.elements)


def encode_escaped(key: ContentKey) -> str:
    """For servers from specification 2.2 on: plain where that is safe in a URL, else with a leading dot and `*` escapes."""
    return _encode(key, "./\\%", _ESCAPED_TABLE)


def encode_canonical(key: ContentKey) -> str:
    """For people: as escaped, but only dots within an element make escapes necessary."""
    return _encode(key, ".", _CANONICAL_TABLE)


def _encode(key: ContentKey, needs_escapes: str, table: dict[int, str]) -> str:
    if not any(char in element for element in key.elements for char in needs_escapes):
        return ".".join(key.elements)
    return "." + ".".join(element.translate(table) for element in key.elements)


def decode(text: str) -> ContentKey:
    """The key of any of the three encodings. `.` and the empty text give the key without elements; a dot at the end is tolerated."""
    return ContentKey(tuple(decode_elements(text)))


def decode_elements(text: str) -> Sequence[str]:
    """The elements of an encoded key, not yet checked to be a valid key; raises `InvalidInput` for a wrong escape.

    An empty element outside the escaped form makes the original read the text once more as escaped, from its second character on, behind the
    elements that it has already. Nothing but a leading dot gives a valid key that way, and the message is the original's.
    """
    elements = text.replace("\x00", _DOT_IN_LEGACY).split(".")
    if elements[-1] == "":
        elements.pop()
    if "" in elements:
        return [_plain(e) for e in elements[: elements.index("")]] + _split_escaped(text)
    return [_plain(e) for e in elements]


def _plain(element: str) -> str:
    return element.replace(_DOT_IN_LEGACY, ".")


def _split_escaped(text: str) -> list[str]:
    elements: list[str] = []
    current = ""
    chars = iter(text[1:])
    for char in chars:
        if char == ".":
            elements.append(current)
            current = ""
        elif char == "*":
            current += _unescape(next(chars, ""), text)
        else:
            current += char
    return [*elements, current] if current else elements


def _unescape(code: str, text: str) -> str:
    if not code:
        raise InvalidInput(f"Illegal escaping sequence at the end of encoded path: {text}")
    if code not in _UNESCAPED:
        raise InvalidInput(f"Illegal escaping sequence *{code} in encoded path: {text}")
    return _UNESCAPED[code]
