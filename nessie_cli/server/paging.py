"""Pages of a listing: how many records one holds, which pass the filter, and the opaque token that names the first one behind it (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

T = TypeVar("T")
_BETWEEN = "\x00"
_KEY = "M\x00"
"""Before the keys in tokens, as in the original's."""


def page(items: Iterable[T], most: int | None, test: Callable[[T], bool] | None = None) -> tuple[list[T], T | None]:
    """The items of one page that pass the test, and the first item behind them, None where there is none.

    `most` is the largest number of items, None for all of them. An item that does not pass counts for nothing.
    """
    found: list[T] = []
    for item in items:
        if test is not None and not test(item):
            continue
        if most is not None and len(found) >= most:
            return found, item
        found.append(item)
    return found, None


def whole_or_page(items: Iterable[T], most: int | None, test: Callable[[T], bool] | None) -> tuple[Iterable[T], T | None]:
    """As `page`. All items, without a test, are answered unread: who sends them may send them as they are read."""
    return (items, None) if most is None and test is None else page(items, most, test)


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
