"""Content keys as bytes whose order is the order of the specification, element by element."""

from __future__ import annotations

from nessie_cli.model import ContentKey, KeyRange

SEPARATOR = "\x00"
"""Between elements.

It sorts below every character of an element, so a key precedes its extensions.
"""


def encode_key(key: ContentKey) -> bytes:
    """Returns the key as the tree stores it."""
    return SEPARATOR.join(key.elements).encode()


def decode_key(raw: bytes) -> ContentKey:
    """Returns the key that `encode_key` encoded."""
    return ContentKey(tuple(raw.decode().split(SEPARATOR)))


def below(raw: bytes) -> tuple[bytes, bytes]:
    """Returns the half-open range of tree keys that contains a key and everything below it."""
    return raw, raw + b"\x01"


def bounds(keys: KeyRange) -> tuple[bytes, bytes | None]:
    """Returns the half-open range of tree keys within the bounds and the prefix of a key range."""
    if keys.prefix is not None and keys.prefix.elements:
        return below(encode_key(keys.prefix))
    start = encode_key(keys.minimum) if keys.minimum else b""
    stop = encode_key(keys.maximum) + b"\x00" if keys.maximum else None
    return start, stop
