"""Content keys as the bytes that the key tree sorts by: byte order equals the order of the specification, element by element."""

from __future__ import annotations

from nessie_cli.model import ContentKey, KeyRange

SEPARATOR = "\x00"
"""Between elements. It sorts below every character that an element may hold, so a key comes before its extensions."""


def encode_key(key: ContentKey) -> bytes:
    """The tree's form of a key."""
    return SEPARATOR.join(key.elements).encode()


def decode_key(raw: bytes) -> ContentKey:
    """The key of its tree form."""
    return ContentKey(tuple(raw.decode().split(SEPARATOR)))


def below(raw: bytes) -> tuple[bytes, bytes]:
    """The half-open range of tree keys that holds a key and everything below it."""
    return raw, raw + b"\x01"


def bounds(keys: KeyRange) -> tuple[bytes, bytes | None]:
    """The half-open range of tree keys that the bounds and the prefix of a key range leave."""
    if keys.prefix is not None and keys.prefix.elements:
        return below(encode_key(keys.prefix))
    start = encode_key(keys.minimum) if keys.minimum else b""
    stop = encode_key(keys.maximum) + b"\x00" if keys.maximum else None
    return start, stop
