"""Listings that are sent while they are read, so that large ones need little memory.

The JSON of log entries, which never change, is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Raw, Struct, json, structs, to_builtins

from nessie_cli.model import LogEntry, Reference
from nessie_cli.server.http.messages import encoded
from nessie_cli.wire.commits import BareLogEntry
from nessie_cli.wire.references import reference_struct
from nessie_cli.wire.rest import BarePage
from nessie_cli.wire.scalars import Json

AT_ONCE = 2000
"""Items in memory before an answer is sent in chunks, and the number of items per chunk."""
CHUNK = 1 << 20
"""Bytes of JSON text from which a chunk ends."""
_OPERATIONS = b'"operations":[]'
_encode = json.Encoder().encode


class ListingBody(NamedTuple):
    """The body of a listing: the attribute with the items, read on demand, and the others.

    Each item is encoded by itself, when it is read, and each operation of a log entry as well.
    `others` is called when all items have been read. `search` finds the items, in short steps,
    before the first one is read.
    """

    name: str
    items: Iterator[Json | Struct | Raw]
    others: Callable[[], Json]
    search: Iterable[None] = ()

    def opened(self) -> Json | Iterator[bytes]:
        """Returns the whole body if it is small, otherwise its JSON text in chunks."""
        parts = self._parts()
        first, is_full = _next(parts)
        if not is_full:
            return self.others() | {self.name: Raw(b"[%b]" % b"".join(first))}
        return self._chunks(first, parts)

    def _parts(self) -> Iterator[bytes]:
        """Yields the texts of the items in parts, with commas between them."""
        comma = b""
        for item in self.items:
            for part in _texts(item):
                yield comma + part
                comma = b""
            comma = b","

    def _chunks(self, texts: list[bytes], parts: Iterator[bytes]) -> Iterator[bytes]:
        yield b"{" + _encode(self.name) + b":[" + b"".join(texts)
        is_full = True
        while is_full:
            # Drops the last chunk before the next one is read.
            texts = []
            texts, is_full = _next(parts)
            if texts:
                yield b"".join(texts)
        others = _encode(self.others())
        yield b"]" + (b"," + others[1:] if len(others) > len(b"{}") else b"}")


def _next(parts: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """Returns the next texts, and whether they fill a chunk."""
    texts, size = [], 0
    for text in parts:
        texts.append(text)
        size += len(text)
        if len(texts) == AT_ONCE or size >= CHUNK:
            return texts, True
    return texts, False


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
) -> ListingBody:
    """Returns a page of a listing. `page` is its struct, a `wire.rest.BarePage`.

    The fields of the struct are `has_more`, `token`, the items, and the references that the page is
    of. An item may be JSON text already. `token` is called after they are read.
    """
    name = page.__struct_encode_fields__[len(BarePage.__struct_fields__)]

    def others() -> Json:
        next_page = token()
        structs = map(reference_struct, references)
        body: Json = to_builtins(page(next_page is not None, next_page, [], *structs))
        del body[name]
        return body

    return ListingBody(name, iter(items), others, search)


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
