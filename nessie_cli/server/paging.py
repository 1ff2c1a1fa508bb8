"""Pages of a listing: how many records one holds, which pass the filter, and the opaque token that names the first one behind it (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

T = TypeVar("T")
_BETWEEN = "\x00"
_KEY = "M\x00"
"""Before the keys in tokens, as in the original's."""


class Page(Generic[T]):
    """The items of one page, which are read as they are taken, and the token of the next page, which is known once all of them have been.

    `most` is the largest number of items, None for all of them; `name` makes the token for the first item behind them.
    """

    def __init__(self, items: Iterable[T], most: int | None, name: Callable[[T], str]) -> None:
        self._items, self._most, self._name = items, most, name
        self._behind: T | None = None

    def __iter__(self) -> Iterator[T]:
        """The items; once."""
        if self._most is None:
            yield from self._items
            return
        items = iter(self._items)
        yield from islice(items, self._most)
        self._behind = next(items, None)

    def token(self) -> str | None:
        """The token of the next page; None where there is none."""
        return None if self._behind is None else self._name(self._behind)


def page(items: Iterable[T], most: int | None, test: Callable[[T], bool] | None, name: Callable[[T], str]) -> Page[T]:
    """As `Page`, of the items that pass a test: one that does not counts for nothing.

    Those that pass are found at once. A test may fail on an item, and that is told by the status of an answer, which comes before its body.
    """
    if test is not None:
        items = list(islice(filter(test, items), None if most is None else most + 1))
    return Page(items, most, name)


def limit(records: int | None) -> int | None:
    """The parameter for the number of records: absent, zero or negative is no limit."""
    return records if records is not None and records > 0 else None


def token(text: str) -> str:
    """A token for a name."""
    return text.encode().hex()


def from_token(text: str) -> str:
    """The name of a token; raises `InvalidInput` for a text that is none."""
    try:
        return bytes.fromhex(text).decode()
    except ValueError:
        raise InvalidInput("Invalid token string representation") from None


def key_token(key: ContentKey) -> str:
    """A token for a content key."""
    return token(_KEY + _BETWEEN.join(key.elements))


def key_from_token(text: str) -> ContentKey | None:
    """The content key of a token; None for a token before all keys, the key without elements for one behind them (they are nobody's)."""
    found = from_token(text)
    if found.startswith(_KEY):
        return ContentKey(tuple(found[len(_KEY) :].split(_BETWEEN)))
    return None if found < _KEY else ContentKey(())
