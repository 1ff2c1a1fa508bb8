"""Suggestions for mistyped names: "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3
_LETTERS_PER_CHANGE = 4
_SHORTEST_START = 3


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?`, or an empty text if no name is similar."""
    near = nearest(word, names)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """Returns at most three names that resemble a word.

    As in git, these are only the nearest ones, counted in changes of a letter. If no word is near,
    they are those that begin with the word.
    """
    typed = word.lower()
    by_folded = {name.lower(): name for name in names}
    most = max(1, len(typed) // _LETTERS_PER_CHANGE)
    near = [
        (distance, name)
        for name in by_folded
        if abs(len(name) - len(typed)) <= most
        and (distance := _changes(typed, name)) <= most
        and distance < len(typed)
    ]
    least = min((distance for distance, _ in near), default=0)
    nearest_names = [name for distance, name in near if distance == least]
    if not nearest_names and len(typed) >= _SHORTEST_START:
        nearest_names = [name for name in by_folded if name.startswith(typed)]
    return [by_folded[name] for name in nearest_names[:_MOST]]


def _changes(word: str, other: str) -> int:
    """Returns how many letters to insert, delete, replace or swap with the next one."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other_letter in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other_letter))
            if i > 1 < j and letter == other[j - 2] and word[i - 2] == other_letter:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]
