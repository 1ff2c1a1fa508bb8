"""The text form of content keys while one is being typed. The rules are those of `ContentKey`, which costs too much to load; a test compares them."""

from __future__ import annotations


def begun(text: str) -> tuple[tuple[str, ...], str, str] | None:
    """The whole elements of a key, how much of the text they take, and the element that has been begun (its quote included); None for no key."""
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
    """The position behind the closing quote."""
    while (position := text.find('"', position)) >= 0:
        if not text.startswith('""', position):
            return position + 1
        position += 2
    return None


def text_of(element: str) -> str:
    """An element as it stands in a key's text form."""
    plain = element.isidentifier() or not any(c in '."' or c.isspace() for c in element)
    return element if plain else '"' + element.replace('"', '""') + '"'


def plain_beginning(begun: str) -> str:
    """What an element has to begin with to be written as begun; quoted elements are looked through one by one."""
    return "" if begun.startswith('"') else begun
