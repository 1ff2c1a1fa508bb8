"""Listings that are sent while they are read, so that large ones need little memory.

The JSON of log entries, which never change, is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Raw, Struct, json, structs, to_builtins

from nessie_cli.model import LogEntry, Reference
from nessie_cli.server.http.messages import Chunks, encoded
from nessie_cli.wire.commits import BareLogEntry
from nessie_cli.wire.references import reference_struct
from nessie_cli.wire.rest import BarePage
from nessie_cli.wire.scalars import Json

AT_ONCE = 2000
"""Items in memory before an answer is sent in chunks, and the number of items per chunk."""
CHUNK = 1 << 20
"""Bytes of JSON text from which a chunk ends."""
_OPERATION = 1000
"""The bytes that an operation of a log entry needs in memory, besides its content."""
_COPIES = 2
"""The item that was read last and its stored value, each about as large as its text."""
_OPERATIONS = b'"operations":[]'
_encode = json.Encoder().encode


class ListingBody(NamedTuple):
    """The body of a listing: the attribute with the items, read on demand, and the others.

    Each item is encoded by itself, when it is read, and each operation of a log entry as well.
    `others` is called when all items have been read. `search` finds the items, in short steps,
    before the first one is read. `held` returns the bytes of the items that are in memory. With
    `is_object`, the attribute is an object, and the items are its members, each as JSON text.
    """

    name: str
    items: Iterator[Json | Struct | Raw]
    others: Callable[[], Json]
    search: Iterable[None] = ()
    held: Callable[[], int] = int
    is_object: bool = False

    def opened(self) -> Json | Chunks:
        """Returns the whole body if it is small, otherwise its JSON text in chunks."""
        parts = _Parts(self.items, self.held)
        first = parts.next()
        if not parts.is_full:
            start, end = self._brackets
            return self.others() | {self.name: Raw(start + b"".join(first) + end)}
        first.insert(0, b"{" + _encode(self.name) + b":" + self._brackets[0])
        return Chunks(self._chunks(first, parts), lambda: parts.held)

    def _chunks(self, texts: list[bytes], parts: _Parts) -> Iterator[bytes]:
        while texts:
            chunk = b"".join(texts)
            # Neither the texts nor the chunk stay in memory while the next one is read.
            texts.clear()
            yield chunk
            del chunk
            texts = parts.next() if parts.is_full else []
        others = _encode(self.others())
        rest = b"," + others[1:] if len(others) > len(b"{}") else b"}"
        yield self._brackets[1] + rest

    @property
    def _brackets(self) -> tuple[bytes, bytes]:
        return (b"{", b"}") if self.is_object else (b"[", b"]")


class _Item:
    """The item that was read last: the number of its operations, if it is a log entry."""

    operations = 0


class _Parts:
    """The texts of items in parts, with commas between them.

    `size_of` returns the bytes of the items that are in memory.
    """

    def __init__(self, items: Iterator[Json | Struct | Raw], size_of: Callable[[], int]) -> None:
        self.is_full = True
        """Whether the last parts fill a chunk."""
        self.held = 0
        """The bytes of the last parts, and of the items in memory."""
        self._size_of = size_of
        self._item = _Item()
        self._texts = _read(items, self._item)

    def next(self) -> list[bytes]:
        """Returns the next texts, up to a chunk."""
        texts: list[bytes] = []
        size = last = 0
        self.is_full = False
        for text in self._texts:
            texts.append(text)
            last = len(text)
            size += last
            if len(texts) == AT_ONCE or size >= CHUNK:
                self.is_full = True
                break
        items = max(self._size_of(), _COPIES * last)
        self.held = size + items + _OPERATION * self._item.operations
        return texts


# No method of `_Parts`: a cycle of references would keep an abandoned answer in memory.
def _read(items: Iterator[Json | Struct | Raw], current: _Item) -> Iterator[bytes]:
    comma = b""
    for item in items:
        current.operations = len(getattr(item, "operations", None) or ())
        # No variable refers to a text, so it stays in memory only until it is sent.
        texts = _texts(item)
        yield comma + next(texts)
        yield from texts
        comma = b","


def _texts(item: Json | Struct | Raw) -> Iterator[bytes]:
    """Yields the text of an item, of a log entry in parts: it may have 64 MiB of contents."""
    operations = getattr(item, "operations", None)
    if not isinstance(item, Struct) or not operations:
        yield encoded(item)
        return
    # The last one: the metadata before it may have a property of this name.
    before, mark, after = encoded(structs.replace(item, operations=[])).rpartition(_OPERATIONS)
    yield before + mark[:-1]
    for number, operation in enumerate(operations):
        yield (b"," if number else b"") + encoded(operation)
    yield mark[-1:] + after


def listing(
    page: Any,
    items: Iterable[Json | Struct | Raw],
    token: Callable[[], str | None],
    *references: Reference,
    search: Iterable[None] = (),
    held: Callable[[], int] = int,
) -> ListingBody:
    """Returns a page of a listing. `page` is its struct, a `wire.rest.BarePage`.

    The fields of the struct are `has_more`, `token`, the items, and the references that the page is
    of. An item may be JSON text already. `token` is called after they are read, `held` for the
    bytes of the items that are in memory.
    """
    name = page.__struct_encode_fields__[len(BarePage.__struct_fields__)]

    def others() -> Json:
        next_page = token()
        structs = map(reference_struct, references)
        body: Json = to_builtins(page(next_page is not None, next_page, [], *structs))
        del body[name]
        return body

    return ListingBody(name, iter(items), others, search, held)


MOST = 4096
"""The number of entries that are cached; sometimes twice as many."""
_LARGEST = 4096
"""The largest entry in bytes that is cached."""


class LogEntryCache:
    """Log entries by commit. Threads may share it."""

    def __init__(self) -> None:
        self._young: dict[str, Raw] = {}
        self._old: dict[str, Raw] = {}

    def log_entry(self, entry: LogEntry) -> BareLogEntry | Raw:
        """Returns the JSON of an entry of a log, API v2.

        It has no operations, because what a caller may see of them differs.
        """
        if entry.operations is not None:
            return BareLogEntry.of(entry)
        text = self._young.get(entry.hash) or self._old.get(entry.hash)
        if text is None:
            text = Raw(encoded(BareLogEntry.of(entry)))
            if len(memoryview(text)) <= _LARGEST:
                self._keep(entry.hash, text)
        return text

    def _keep(self, hash_: str, text: Raw) -> None:
        if len(self._young) >= MOST:
            self._old, self._young = self._young, {}
        self._young[hash_] = text
