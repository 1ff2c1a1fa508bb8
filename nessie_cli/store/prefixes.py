"""Ranges of texts with a common prefix, in the order of code points."""

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
