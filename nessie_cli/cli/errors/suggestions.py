"""Suggestions for mistyped names: "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?`, or an empty text if no name is similar."""
    near = nearest(word, known)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Returns at most three known words that resemble a word, best match first."""
    from difflib import get_close_matches

    candidates = list(known)
    by_folded = {name.lower(): name for name in candidates}
    return [
        by_folded[found] for found in get_close_matches(word.lower(), by_folded, n=3, cutoff=0.6)
    ]
