"""Text on a terminal: escaping, width in cells, shortening.

Stored data is written by others. A commit message or a key may contain escape sequences or
direction marks that repaint or disguise text, so everything is made visible before it is written,
also into a pipe.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

ELLIPSIS = "…"
_BEFORE = 3
"""Characters shown before the first difference of two texts."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000


def counted(number: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 key`, `2,000 keys`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def human_size(number: int) -> str:
    """Returns a number of bytes with a unit for people.

    >>> human_size(999), human_size(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    value, unit = float(number), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value /= _STEP
        unit += 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else counted(number, "byte")


def cells(text: str) -> int:
    """Returns the columns of a terminal that a visible text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, width: int) -> str:
    """Pads with spaces on the right to `width` columns; a longer text stays unchanged."""
    return text + " " * (width - cells(text))


def take(text: str, width: int) -> str:
    """Returns the longest prefix that fits into `width` columns, with its combining marks."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for position, char in enumerate(text):
        used += _cells_of(char)
        if used > width:
            return text[:position]
    return text


def _take_end(text: str, width: int) -> str:
    used = 0
    start = len(text)
    for position in range(len(text) - 1, -1, -1):
        used += _cells_of(text[position])
        if used > width:
            break
        # A combining mark without its letter would change the ellipsis.
        if _cells_of(text[position]):
            start = position
    return text[start:]


def shorten_end(text: str, width: int) -> str:
    """Returns the text in at most `width` columns, with its end left out."""
    return text if cells(text) <= width else take(text, width - 1) + ELLIPSIS


def shorten_middle(text: str, width: int) -> str:
    """Returns the text in at most `width` columns, with its middle left out.

    >>> shorten_middle("s3://lake/db/orders/metadata/00012-a.json", 20)
    's3://lake…012-a.json'
    """
    if cells(text) <= width:
        return text
    front = take(text, (width - 1) // 2)
    return front + ELLIPSIS + _take_end(text, width - 1 - cells(front))


def wrap(text: str, width: int) -> list[str]:
    """Wraps a text at `width` columns, at spaces if possible.

    >>> wrap("load of a long night", 8)
    ['load of', 'a long', 'night']
    """
    lines = []
    while cells(text) > width > 1:
        line = take(text, width + 1)
        space = line.rstrip(" ").rfind(" ") if line[-1:] != " " else len(line) - 1
        cut = space if line[:space].strip() and space > 0 else len(take(text, width))
        lines.append(text[:cut].rstrip(" "))
        text = text[cut:].lstrip(" ")
    return [*lines, text]


_WORD = re.compile(r"`[^`]*`[^ ]*|[^ ]+")
"""A word, or a command between backticks, which stays on one line if possible."""
_BARE = re.compile("[^ ]+")


def line_ends(text: str, width: int) -> list[tuple[int, int]]:
    """Returns where the lines of a text begin and end, broken only between words.

    Lines after the first one have `width` columns less the indentation of the text. A word that is
    wider than a line stays whole, so that it can be copied.

    >>> text = "restores it: `nessie undo main`"
    >>> [text[start:end] for start, end in line_ends(text, 20)]
    ['restores it:', '`nessie undo main`']
    """
    if cells(text) <= width:
        return [(0, len(text))]
    room = width - (len(text) - len(text.lstrip(" ")))
    unbroken = [
        word.span()
        for match in _WORD.finditer(text)
        for word in ([match] if cells(match[0]) <= room else _BARE.finditer(text, *match.span()))
    ]
    lines: list[tuple[int, int]] = []
    start = 0
    for (_, end), (next_start, next_end) in pairwise(unbroken):
        limit = room if lines else width
        if cells(text[start:next_end]) > limit and cells(text[next_start:next_end]) <= room:
            lines.append((start, end))
            start = next_start
    return [*lines, (start, len(text))]


def fit_alike(texts: Sequence[str], width: int) -> list[str]:
    """Shortens texts side by side and keeps what differs; different texts stay different.

    An ellipsis replaces the folder and the file extension that all texts share. If a text is still
    too long, it loses its middle, or everything but the first difference. If nothing helps, the
    texts are returned whole.

    >>> fit_alike(["s3://lake/db/012-a.metadata.json", "s3://lake/db/013-f.metadata.json", ""], 12)
    ['…/012-a…', '…/013-f…', '']
    """
    present = [text for text in texts if text]
    if len(set(present)) < 2 or max(map(cells, texts)) <= width:  # noqa: PLR2004 (nothing to tell apart)
        return [shorten_middle(text, width) for text in texts]
    folder = len(_common_start(present).rpartition("/")[0])
    rest = [ELLIPSIS + text[folder:] if folder > 1 and text else text for text in texts]
    parting = max(0, len(_common_start(list(filter(None, rest)))) - _BEFORE)
    for shortened in (
        [shorten_middle(text, width) for text in _without_extension(rest, width)],
        [shorten_middle(text, width) for text in rest],
        [_from(text, parting, width) for text in rest],
        [_from(text, _parting(text, texts, width), width) for text in texts],
    ):
        if len(set(shortened)) == len(set(texts)):
            return shortened
    return list(texts)


def _without_extension(texts: Sequence[str], width: int) -> list[str]:
    """Replaces the common file extension of texts that are too long by an ellipsis."""
    endings = {text[text.find(".", text.rfind("/") + 1) :] for text in texts if "." in text}
    fit = max(map(cells, texts)) <= width
    if fit or len(endings) != 1 or not all(text.endswith(tuple(endings)) for text in texts if text):
        return list(texts)
    return [text.removesuffix(*endings) + ELLIPSIS if text else text for text in texts]


def _from(text: str, start: int, width: int) -> str:
    return (
        text
        if cells(text) <= width
        else shorten_end((ELLIPSIS if start else "") + text[start:], width)
    )


def _parting(text: str, others: Sequence[str], width: int) -> int:
    """Returns where to begin a text so that its first difference is visible."""
    place = max((len(_common_start([text, other])) for other in others if other != text), default=0)
    folder = text.rfind("/", 0, place)
    return (
        folder
        if folder >= 0 and place - folder < width - 2 * len(ELLIPSIS)
        else max(0, place - _BEFORE)
    )


def _common_start(texts: Sequence[str]) -> str:
    """Returns the common prefix of all texts."""
    low, high = min(texts), max(texts)
    return low[: next((i for i, char in enumerate(low) if char != high[i]), len(low))]
