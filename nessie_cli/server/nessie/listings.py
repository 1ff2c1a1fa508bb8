"""The listings of both versions of the API, filtered and divided into pages.

A page has a size, and the opaque token of the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress, takewhile
from math import inf
from time import thread_time
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Raw, Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import encoded
from nessie_cli.server.http.streams import ListingBody, listing
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.targets import Target, commit, parse_spec
from nessie_cli.wire import keys
from nessie_cli.wire.contents import content_struct
from nessie_cli.wire.extensions import WHOLE
from nessie_cli.wire.scalars import Json

T = TypeVar("T")
STEP = 0.05
"""Seconds of processor time per step of a search."""
HELD = 2000
"""Items that a search keeps in memory. If more pass, they are read a second time."""
LARGEST_PAGE = 4 << 20
"""Bytes of contents from which a page ends."""
_BETWEEN = "\x00"
_KEY = "M\x00"
"""The prefix of keys in tokens, as in the original server."""
MOST_COMMITS = 250
"""The largest and default page of a log."""


def filter_of(call: Call, kind: str, held: float = HELD) -> Filter[Any] | None:
    """Returns the parameter `filter`, or None.

    It is compiled even if there is nothing to filter.
    """
    text = call.text("filter")
    if not text:
        return None
    from nessie_cli.wire.filters import FilterKind, compile_filter

    return Filter(compile_filter(FilterKind(kind), text), call.filter_seconds, held)


def references(call: Call, records: int | None, page_token: str | None) -> ListingPage[Reference]:
    """Returns a page of references."""
    metadata = call.fetches_all()
    # References may move between two readings, so all that pass are kept.
    filter_ = filter_of(call, "references", held=inf)
    return page(
        lambda: _references(call, page_token, metadata=metadata),
        limit(records),
        lambda reference: token(f"{reference.type.value}/{reference.name}"),
        filter_,
    )


def _references(call: Call, page_token: str | None, *, metadata: bool) -> Iterator[Reference]:
    """Yields the references from a page on. A token names the kind too, because it may be gone."""
    kind, between, name = (
        (ReferenceType.BRANCH.value, "/", "")
        if page_token is None
        else from_token(page_token).partition("/")
    )
    if not between:
        raise InvalidInput("Invalid token string representation")
    if kind == ReferenceType.BRANCH:
        yield from call.repository.references(ReferenceType.BRANCH, start=name, metadata=metadata)
        name = ""
    yield from call.repository.references(ReferenceType.TAG, start=name, metadata=metadata)


def log(call: Call, start: str, oldest: str | None, records: int | None) -> ListingPage[LogEntry]:
    """Returns a page of the log from a commit on; the oldest commit ends it, filtered or not."""
    operations = call.fetches_all()
    filter_ = filter_of(call, "log")
    most = min(limit(records) or MOST_COMMITS, MOST_COMMITS)

    def read() -> Iterable[LogEntry]:
        entries = call.repository.log(Revision(None, start), operations=operations)
        return _until(entries, oldest) if oldest else entries

    return page(read, most, lambda entry: entry.hash, filter_, size_of_log_entry)


def _until(entries: Iterable[LogEntry], oldest: str) -> Iterator[LogEntry]:
    for entry in entries:
        yield entry
        if entry.hash == oldest:
            return


def token_start(call: Call, page_token: str) -> str:
    """Returns the commit that the token of a log names."""
    return commit(call.repository, parse_spec(page_token, "page token"), "Token pagination hash")


def oldest_of(text: str | None) -> Target | None:
    """Returns the commit that ends a log; an empty text is HEAD."""
    if text is None:
        return None
    return parse_spec(text, "limit-hash") if text else Target(None)


def key_range(call: Call) -> KeyRange:
    """Returns the parameters `key`, `min-key`, `max-key` and `prefix-key`."""
    requested = [keys.decode(text) for text in call.texts("key")]
    range_ = KeyRange(
        keys=tuple(key for key in requested if key.elements) if requested else None,
        minimum=call.key("min-key"),
        maximum=call.key("max-key"),
        prefix=call.key("prefix-key"),
    )
    if range_.prefix is not None and (range_.minimum is not None or range_.maximum is not None):
        raise InvalidInput("Combining prefixKey with either minKey or maxKey is not supported.")
    if (
        range_.minimum is not None
        and range_.maximum is not None
        and range_.minimum > range_.maximum
    ):
        raise InvalidInput("'to' must be greater than 'from'")
    return range_


def from_page(range_: KeyRange, page_token: str | None) -> tuple[KeyRange, ContentKey | None]:
    """Returns the range from a page on, and the prefix to be filtered, which allows no bounds."""
    start = key_from_token(page_token) if page_token else None
    if start is None:
        return range_, None
    if not start.elements:
        return KeyRange(keys=()), None
    minimum = max(start, range_.minimum) if range_.minimum else start
    return KeyRange(keys=range_.keys, minimum=minimum, maximum=range_.maximum), range_.prefix


def entries(
    call: Call,
    at: Reference,
    range_: KeyRange,
    *,
    records: int | None,
    page_token: str | None,
    content: bool = False,
) -> ListingPage[Entry]:
    """Returns a page of keys."""
    filter_ = filter_of(call, "entries")
    if filter_ is not None and range_ == KeyRange():
        range_ = _range_of(call.text("filter") or "")
    rest, prefix = from_page(range_, page_token)

    def read() -> Iterable[Entry]:
        items = call.repository.entries(Revision(None, at.hash), rest, content=content)
        return (
            items
            if prefix is None
            else takewhile(lambda entry: entry.key.starts_with(prefix), items)
        )

    return page(read, limit(records), lambda entry: key_token(entry.key), filter_, _size_of_entry)


def _size_of_entry(entry: Entry) -> int:
    return _size(entry.content)


def _range_of(text: str) -> KeyRange:
    """Returns the keys that a filter of entries can match."""
    from nessie_cli.wire.filter_range import prefix_of

    return KeyRange(prefix=prefix_of(text))


def differences(
    call: Call,
    before: Reference,
    after: Reference,
    range_: KeyRange,
    *,
    records: int | None = None,
    page_token: str | None = None,
    in_pages: bool = True,
) -> ListingPage[DiffEntry]:
    """Returns a page of a diff, or the whole diff."""
    filter_ = filter_of(call, "diff")
    rest, prefix = from_page(range_, page_token)

    def read() -> Iterable[DiffEntry]:
        # The first page is refused for all.
        whole = page_token is None and call.is_ours and call.flag(WHOLE)
        items = call.repository.diff(
            Revision(None, before.hash), Revision(None, after.hash), rest, whole=whole
        )
        return (
            items
            if prefix is None
            else takewhile(lambda entry: entry.key.starts_with(prefix), items)
        )

    size = _size_of_difference if in_pages else None
    return page(read, limit(records), lambda entry: key_token(entry.key), filter_, size)


def _size_of_difference(entry: DiffEntry) -> int:
    return _size(entry.before) + _size(entry.after)


def size_of_log_entry(entry: LogEntry) -> int:
    """Returns the size of the metadata and the contents of a commit."""
    contents = (item.content for item in entry.operations or () if isinstance(item, Put))
    return sum(map(len, entry.meta.texts)) + sum(map(_size, contents))


def _size(content: Content | None) -> int:
    return 0 if content is None else len(encoded(content_struct(content)))


class ListingPage(Generic[T]):
    """The items of one page, read on iteration, and the token of the next page afterwards.

    `most` is the largest number of items, None for all; `name` creates the token for the first item
    of the next page. A page also ends after the item with which it reaches `LARGEST_PAGE` bytes.
    `size` returns those of an item; without it, only `most` counts.
    """

    def __init__(
        self,
        items: Iterable[T],
        most: int | None,
        name: Callable[[T], str],
        size: Callable[[T], int] | None = None,
    ) -> None:
        self._items, self._most, self._name, self._size = items, most, name, size
        self._behind: T | None = None
        self._number = self._bytes = self._last = 0

    def __iter__(self) -> Iterator[T]:
        """Yields the items, once."""
        for item in self._items:
            if self._is_full:
                self._behind = item
                return
            self._count(item)
            yield item

    @property
    def _is_full(self) -> bool:
        return self._number == self._most or self._bytes >= LARGEST_PAGE

    def _count(self, item: T) -> None:
        self._number += 1
        if self._size is not None:
            self._last = self._size(item)
            self._bytes += self._last

    def held(self) -> int:
        """Returns the bytes of the items that the page keeps in memory: of the last one."""
        return self._last

    def search(self) -> Iterator[None]:
        """Does what must be done before the items are read, in short steps."""
        return iter(())

    def token(self) -> str | None:
        """The token of the next page, or None."""
        return None if self._behind is None else self._name(self._behind)

    def body(
        self, page: Any, struct_of: Callable[[T], Json | Struct | Raw], *references: Reference
    ) -> ListingBody:
        """Returns the body of an answer: a page of this class, at these references.

        `struct_of` makes the struct of an item.
        """
        return listing(
            page,
            map(struct_of, self),
            self.token,
            *references,
            search=self.search(),
            held=self.held,
        )


class Filter(NamedTuple, Generic[T]):
    """A filter: a test, its `seconds` of processor time per page, and the most items in memory."""

    test: Callable[[T], bool]
    seconds: float
    held: float = HELD


class FilteredPage(ListingPage[T]):
    """A `ListingPage` of the items that pass a test.

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
        size: Callable[[T], int] | None = None,
    ) -> None:
        super().__init__((), most, name, size)
        self._read, self._filter = read, filter_
        self._passed: list[T] = []
        self._marks = bytearray()

    def held(self) -> int:
        """Returns the bytes of all items that have passed."""
        return self._bytes

    def search(self) -> Iterator[None]:
        """Tests the items, some in each step."""
        items = iter(self._read())
        used, begun = 0.0, thread_time()
        for item in items:
            passes = self._filter.test(item)
            if passes and self._is_full:
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
        if passes:
            self._count(item)
            if self._number <= self._filter.held:
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
    size: Callable[[T], int] | None = None,
) -> ListingPage[T]:
    """Returns a page of items, filtered if there is a filter."""
    if filter_ is None:
        return ListingPage(read(), most, name, size)
    return FilteredPage(read, most, name, filter_, size)


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
    position = from_token(text)
    if position.startswith(_KEY):
        return ContentKey(tuple(position[len(_KEY) :].split(_BETWEEN)))
    return None if position < _KEY else ContentKey(())
