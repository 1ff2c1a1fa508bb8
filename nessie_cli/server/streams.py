"""Listings without an end in sight: they are sent as they are read, so that the catalog of a whole lake needs no more memory than a page of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from msgspec import MsgspecError, Raw, json

from nessie_cli.model import Reference
from nessie_cli.wire.encode import Json, encode_page

AT_ONCE = 2000
"""Items that are collected before it is decided: fewer are an ordinary answer; more are sent in pieces of so many."""
_GZIP = zlib.MAX_WBITS | 16
_encode = json.Encoder().encode


class Listing(NamedTuple):
    """The body of an answer that lists something: the attribute which holds the items, these, which are read as they are needed, and the others.

    `others` are asked for when all items have been read. `search` finds the items, in short steps, before the first one is read.
    """

    name: str
    items: Iterator[Json | Raw]
    others: Callable[[], Json]
    search: Iterable[None] = ()

    def opened(self) -> Json | Iterator[bytes]:
        """The whole body, where it is small, or its JSON text in pieces."""
        first = list(islice(self.items, AT_ONCE))
        if len(first) < AT_ONCE:
            return self.others() | {self.name: first}
        return self._pieces(first)

    def _pieces(self, first: list[Json | Raw]) -> Iterator[bytes]:
        yield b"{" + _encode(self.name) + b":[" + _joined(first)
        while more := list(islice(self.items, AT_ONCE)):
            yield b"," + _joined(more)
        others = _encode(self.others())
        yield b"]" + (b"," + others[1:] if len(others) > len(b"{}") else b"}")


def listing(
    name: str,
    items: Iterable[Json | Raw],
    token: Callable[[], str | None],
    *,
    search: Iterable[None] = (),
    **references: Reference,
) -> Listing:
    """As `encode_page`, with items that are unread; `token` is asked for the next page's when they have been read. See `Listing`."""

    def others() -> Json:
        page = encode_page(name, (), token(), **references)
        del page[name]
        return page

    return Listing(name, iter(items), others, search)


def packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces, compressed by gzip."""
    packer = zlib.compressobj(1, wbits=_GZIP)
    yield from filter(None, map(packer.compress, pieces))
    yield packer.flush()


def encoded(value: Any) -> bytes:
    """A JSON value as text."""
    try:
        return _encode(value)
    except (MsgspecError, OverflowError):
        # Numbers of a content of an unknown type may be longer than 64 bits.
        from json import dumps

        return dumps(value, ensure_ascii=False).encode()


def _joined(items: list[Json | Raw]) -> bytes:
    return b",".join(map(encoded, items))
