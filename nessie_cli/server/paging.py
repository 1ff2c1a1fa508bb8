"""Pages of a listing: how many records one holds, which pass the filter, and the opaque token that names the first one behind it (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress, islice
from time import thread_time
from typing import Generic, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

T = TypeVar("T")
STEP = 0.05
"""Seconds of processor time that one step of a search takes."""
HELD = 2000
"""Items that a search holds in memory. If more pass the test, they are read a second time."""
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

    def search(self) -> Iterator[None]:
        """What has to be done before the items are taken, in short steps."""
        return iter(())

    def token(self) -> str | None:
        """The token of the next page; None where there is none."""
        return None if self._behind is None else self._name(self._behind)


class Filter(NamedTuple, Generic[T]):
    """A test of items, the `seconds` of processor time that it gets on one page, and how many items that pass are `held` in memory."""

    test: Callable[[T], bool]
    seconds: float
    held: float = HELD


class FilteredPage(Page[T]):
    """As `Page`, of the items that pass a test: one that does not counts for nothing.

    A test may fail on an item, and that is told by the status of an answer, which comes before its body. So all items are tested by
    `search`, in short steps, before the first one is taken. `read` returns the items. If more of them pass than are held in memory, they are
    read a second time, so `read` has to return the same ones then.

    When the time of the filter is over, the page ends where it is, and its token names the first item that was not tested.
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
        """Test the items, some in each step."""
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
                # The next step may be on another thread.
                begun = thread_time()

    def _note(self, item: T, *, passes: bool) -> None:
        self._marks.append(passes)
        self._number += passes
        if passes and self._number <= self._filter.held:
            self._passed.append(item)

    def __iter__(self) -> Iterator[T]:
        """The items that have passed; once."""
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
    """A page of items, of those that pass a filter if there is one."""
    return Page(read(), most, name) if filter_ is None else FilteredPage(read, most, name, filter_)


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
