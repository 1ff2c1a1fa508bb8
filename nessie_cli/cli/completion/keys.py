"""Completion of content keys, one element at a time."""

from __future__ import annotations

from collections.abc import Iterator

from nessie_cli.model import ContentKey, Entry, KeyRange, type_label
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

_NAMESPACE = "namespace"


def keys(repository: Repository, at: Revision, word: str) -> list[tuple[str, str]]:
    """Returns keys that begin with the word, one element longer.

    A key with keys below ends with a dot.
    """
    typed = begun(word)
    if typed is None:
        return []
    above, whole, beginning = typed
    candidates = []
    # Quoted elements are compared one by one.
    plain = "" if beginning.startswith('"') else beginning
    for element, type_, has_keys in _elements(repository, at, above, plain):
        text = str(ContentKey((element,)))
        if text.startswith(beginning):
            candidates.append((f"{whole}{text}{'.' if has_keys else ''}", type_))
    return candidates


def begun(text: str) -> tuple[tuple[str, ...], str, str] | None:
    """Returns the complete elements of a key, their text, and the incomplete element.

    Returns None if the text is not the beginning of a key.
    """
    elements: list[str] = []
    position = 0
    while True:
        if text.startswith('"', position):
            end = _end_of_quotes(text, position + 1)
            if end is None or end == len(text):
                return tuple(elements), text[:position], text[position:]
            element = text[position + 1 : end - 1].replace('""', '"')
        else:
            end = text.find(".", position)
            if end < 0:
                return tuple(elements), text[:position], text[position:]
            element = text[position:end]
            if '"' in element:
                return None
        if not element or text[end] != ".":
            return None
        elements.append(element)
        position = end + 1


def _end_of_quotes(text: str, position: int) -> int | None:
    """Returns the position after the closing quote."""
    while (position := text.find('"', position)) >= 0:
        if not text.startswith('""', position):
            return position + 1
        position += 2
    return None


def _elements(
    repository: Repository, at: Revision, above: tuple[str, ...], begun_: str
) -> Iterator[tuple[str, str, bool]]:
    """Yields elements right below a key: each with its type and whether keys are below it."""
    depth = len(above)
    start: tuple[str, ...] = (*above, begun_) if begun_ else above
    while True:
        entry = _next(repository, at, start, above)
        if (
            entry is None
            or entry.key.elements[:depth] != above
            or not entry.key.elements[depth].startswith(begun_)
        ):
            return
        element = entry.key.elements[depth]
        here = (*above, element)
        is_own = len(entry.key.elements) == depth + 1
        # No character of a key sorts before the space, so this follows everything below the
        # element.
        start = (*above, f"{element} ")
        following = _next(repository, at, (*here, " "), here) if is_own else entry
        has_keys = following is not None and following.key.elements[: depth + 1] == here
        yield element, type_label(entry.type) if is_own else _NAMESPACE, has_keys


def _next(
    repository: Repository, at: Revision, start: tuple[str, ...], above: tuple[str, ...]
) -> Entry | None:
    """Returns the first entry from a key on, other than `above` itself."""
    entries = repository.entries(at, KeyRange(minimum=ContentKey(start) if start else None))
    return next((entry for entry in entries if entry.key.elements != above), None)
