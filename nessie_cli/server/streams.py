"""Listings without an end in sight: they are sent as they are read, so that the catalog of a whole lake needs no more memory than a page of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from msgspec import MsgspecError, json

from nessie_cli.model import Reference
from nessie_cli.wire.encode import Json, encode_page

AT_ONCE = 2000
"""Items that are collected before it is decided: fewer are an ordinary answer; more are sent in pieces of so many."""
_GZIP = zlib.MAX_WBITS | 16
_encode = json.Encoder().encode


class Listing(NamedTuple):
    """The body of an answer that lists something: its attributes, the one which holds the items, and the items, which are read as they are needed."""

    body: Json
    name: str
    items: Iterator[Json]

    def opened(self) -> Json | Iterator[bytes]:
        """The whole body, where it is small, or its JSON text in pieces."""
        first = list(islice(self.items, AT_ONCE))
        if len(first) < AT_ONCE:
            return self.body | {self.name: first}
        return self._pieces(first)

    def _pieces(self, first: list[Json]) -> Iterator[bytes]:
        name = _encode(self.name)
        before, _, behind = _encode(self.body | {self.name: []}).partition(name + b":[]")
        yield before + name + b":[" + _joined(first)
        while more := list(islice(self.items, AT_ONCE)):
            yield b"," + _joined(more)
        yield b"]" + behind


def listing(name: str, items: Iterable[Json], token: str | None, **references: Reference) -> Listing:
    """As `encode_page`, with items that may be unread."""
    return Listing(encode_page(name, (), token, **references), name, iter(items))


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


def _joined(items: list[Json]) -> bytes:
    return b",".join(map(encoded, items))
