"""'Did you mean': the nearest of the names that do exist. Loaded on the way to an error only."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` or an empty text."""
    near = nearest(word, known)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most three known words that look like this one, the best first."""
    from difflib import get_close_matches

    candidates = list(known)
    by_folded = {name.lower(): name for name in candidates}
    return [by_folded[found] for found in get_close_matches(word.lower(), by_folded, n=3, cutoff=0.6)]
