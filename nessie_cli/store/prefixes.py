"""Ranges of texts (by code point) and of ids with a common prefix."""

from __future__ import annotations

_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000


def after_prefix(prefix: str) -> str | None:
    """Returns the first text after all that begin with `prefix`, or None if there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    code = ord(stem[-1]) + 1
    # Surrogates have no bytes that could be compared.
    return stem[:-1] + chr(_AFTER_SURROGATES if code == _FIRST_SURROGATE else code)


def hex_range(prefix: str) -> tuple[bytes, bytes] | None:
    """Returns the lowest and the highest id with this prefix of the lower-case hex form."""
    try:
        low = bytes.fromhex(prefix + "0" * (len(prefix) % 2))
        high = bytes.fromhex(prefix.ljust(64, "f"))
    except ValueError:
        return None
    return (low, high) if prefix == prefix.lower() else None
