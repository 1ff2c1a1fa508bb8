"""Content keys in URLs: three encodings to text, and one decoder for all of them.

The texts are not percent-encoded; decode a URL segment first. The command line's form of a key is
`str(key)`. See the Nessie specification, "Content Key Encoding":
https://projectnessie.org/develop/spec/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

_DOT_IN_LEGACY: Final = "\x1d"
_ESCAPES: Final = {".": ".", "*": "*", "/": "{", "\\": "}", "%": "["}
"""The characters after `*` for each escaped character."""
_UNESCAPED: Final = {code: char for char, code in _ESCAPES.items()}
_ESCAPED_TABLE: Final = str.maketrans({char: f"*{code}" for char, code in _ESCAPES.items()})
_CANONICAL_TABLE: Final = str.maketrans({".": "*.", "*": "**"})


def encode_legacy(key: ContentKey) -> str:
    """Encodes for servers below specification 2.2: a dot within an element becomes U+001D."""
    return ".".join(element.replace(".", _DOT_IN_LEGACY) for element in key.elements)


def encode_escaped(key: ContentKey) -> str:
    """Encodes for servers from specification 2.2 on.

    The result is plain if that is safe in a URL; otherwise it has a leading dot and `*` escapes.
    """
    return _encode(key, "./\\%", _ESCAPED_TABLE)


def encode_canonical(key: ContentKey) -> str:
    """Encodes for people: only dots within an element require escapes."""
    return _encode(key, ".", _CANONICAL_TABLE)


def _encode(key: ContentKey, needs_escapes: str, table: dict[int, str]) -> str:
    if not any(char in element for element in key.elements for char in needs_escapes):
        return ".".join(key.elements)
    return "." + ".".join(element.translate(table) for element in key.elements)


def decode(text: str) -> ContentKey:
    """Decodes a key of any of the three encodings.

    `.` and the empty text give the key without elements; a trailing dot is tolerated.
    """
    return ContentKey(tuple(decode_elements(text)))


def decode_elements(text: str) -> Sequence[str]:
    """Returns the elements of an encoded key, which may not be a valid key.

    Raises `InvalidInput` for a wrong escape. After an empty element outside the escaped form, the
    original server reads the text again as escaped, from its second character on, and appends the
    result. Only a leading dot gives a valid key that way; the message is the original's.
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
