"""One content of a catalog, and all its keys as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nessie_cli.errors import ContentNotFound, NotAllowed
from nessie_cli.model import Content, ContentKey, Entry, KeyRange, Reference
from nessie_cli.repository.reader import ReadableRepository


def entry_at(
    repository: ReadableRepository, at: Reference, key: ContentKey
) -> tuple[Entry, Content]:
    """Returns the entry of a key and its content.

    Raises `ContentNotFound` if there is none, and `NotAllowed` if the caller may not read it.
    """
    entry = next(iter(repository.entries(at.hash, KeyRange(keys=(key,)), content=True)), None)
    if entry is None or entry.content is None:
        raise _missing(repository, at, key)
    return entry, entry.content


def _missing(
    repository: ReadableRepository, at: Reference, key: ContentKey
) -> NotAllowed | ContentNotFound:
    """Returns the error for a key that is missing in a listing.

    A listing omits contents that the caller may not read, so this requests the content itself.
    """
    try:
        repository.content(at.hash, key)
    except NotAllowed as refusal:
        return refusal
    except ContentNotFound:
        where = at.name or at.hash
        return ContentNotFound(
            f"Could not find content for key '{key}' in reference '{where}'.", key
        )
    return NotAllowed(f"listing key '{key}' is not allowed")


class TreeRow(NamedTuple):
    """A key in a tree: its depth, its last element, its entry.

    A namespace without a content has no entry.
    """

    depth: int
    name: str
    entry: Entry | None


def tree_rows(entries: Iterable[Entry]) -> Iterator[TreeRow]:
    """Yields a row for each key, ascending, and before it one for each new namespace above it."""
    above: tuple[str, ...] = ()
    for entry in entries:
        elements = entry.key.elements
        pairs = enumerate(zip(above, elements, strict=False))
        shared = next((n for n, (a, b) in pairs if a != b), min(len(above), len(elements)))
        last = len(elements) - 1
        for depth in range(shared, last):
            yield TreeRow(depth, str(ContentKey(elements[depth : depth + 1])), None)
        yield TreeRow(last, str(ContentKey(elements[-1:])), entry)
        above = elements
