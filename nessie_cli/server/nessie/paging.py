"""Pages of a listing: their size, their filter, and the opaque token of the next page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress, islice
from time import thread_time
from typing import Generic, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

T = TypeVar("T")
STEP = 0.05
"""Seconds of processor time per step of a search."""
HELD = 2000
"""Items that a search keeps in memory. If more pass, they are read a second time."""
_BETWEEN = "\x00"
_KEY = "M\x00"
"""The prefix of keys in tokens, as in the original server."""


class Page(Generic[T]):
    """The items of one page, read on iteration, and the token of the next page afterwards.

    `most` is the largest number of items, None for all; `name` creates the token for the first item
    of the next page.
    """

    def __init__(self, items: Iterable[T], most: int | None, name: Callable[[T], str]) -> None:
        self._items, self._most, self._name = items, most, name
        self._behind: T | None = None

    def __iter__(self) -> Iterator[T]:
        """Yields the items, once."""
        if self._most is None:
            yield from self._items
            return
        items = iter(self._items)
        yield from islice(items, self._most)
        self._behind = next(items, None)

    def search(self) -> Iterator[None]:
        """Does what must be done before the items are read, in short steps."""
        return iter(())

    def token(self) -> str | None:
        """The token of the next page, or None."""
        return None if self._behind is None else self._name(self._behind)


class Filter(NamedTuple, Generic[T]):
    """A filter: a test, its `seconds` of processor time per page, and the most items in memory."""

    test: Callable[[T], bool]
    seconds: float
    held: float = HELD


class FilteredPage(Page[T]):
    """A `Page` of the items that pass a test.

    A test may fail on an item, and the status of the answer reports that before its body begins. So
    `search` tests all items in short steps before the first one is sent. `read` returns the items.
    If more of them pass than fit in memory, they are read a second time, and `read` must return the
    same ones.

    If the time of the filter is over, the page ends there, and its token names the first item that
    was not tested.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[T]],
        most: int | None,
        name: Callable[[T], str],
        filter_: Filter[T],
    ) -> None:
        super().__init__((), most, name)
        self._read, self._filter = read, filter_
        self._passed: list[T] = []
        self._marks = bytearray()
        self._number = 0

    def search(self) -> Iterator[None]:
        """Tests the items, some in each step."""
        items = iter(self._read())
        used, begun = 0.0, thread_time()
        for item in items:
            passes = self._filter.test(item)
            if passes and self._number == self._most:
                self._behind = item
                return
            self._note(item, passes=passes)
            if (taken := thread_time() - begun) > STEP:
                used += taken
                if used > self._filter.seconds:
                    self._behind = next(items, None)
                    return
                yield
                # The next step may run on another thread.
                begun = thread_time()

    def _note(self, item: T, *, passes: bool) -> None:
        self._marks.append(passes)
        self._number += passes
        if passes and self._number <= self._filter.held:
            self._passed.append(item)

    def __iter__(self) -> Iterator[T]:
        """Yields the items that have passed, once."""
        passed, self._passed = self._passed, []
        yield from (
            passed if self._number <= self._filter.held else compress(self._read(), self._marks)
        )


def page(
    read: Callable[[], Iterable[T]],
    most: int | None,
    name: Callable[[T], str],
    filter_: Filter[T] | None,
) -> Page[T]:
    """Returns a page of items, filtered if there is a filter."""
    return Page(read(), most, name) if filter_ is None else FilteredPage(read, most, name, filter_)


def limit(records: int | None) -> int | None:
    """Returns the parameter for the number of records; absent, zero or negative means no limit."""
    return records if records is not None and records > 0 else None


def token(text: str) -> str:
    """Returns a token for a name."""
    return text.encode().hex()


def from_token(text: str) -> str:
    """Returns the name of a token. Raises `InvalidInput`."""
    try:
        return bytes.fromhex(text).decode()
    except ValueError:
        raise InvalidInput("Invalid token string representation") from None


def key_token(key: ContentKey) -> str:
    """Returns a token for a content key."""
    return token(_KEY + _BETWEEN.join(key.elements))


def key_from_token(text: str) -> ContentKey | None:
    """Returns the content key of a token.

    Returns None for a token before all keys, and the key without elements for one after all keys.
    """
    found = from_token(text)
    if found.startswith(_KEY):
        return ContentKey(tuple(found[len(_KEY) :].split(_BETWEEN)))
    return None if found < _KEY else ContentKey(())
