"""What tables and views have in common: listings, drop and rename.

Listings come in pages if the client asks for them. All pages of a listing show one commit.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from msgspec import DecodeError, ValidationError, json

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.state import State
from nessie_cli.model import (
    CommitResult,
    ContentKey,
    Delete,
    IcebergTable,
    IcebergView,
    Operation,
    Put,
)
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.names import (
    identifier_of,
    namespace_in,
    need_free_for,
    need_namespace,
)
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Proposal, UnreadableParameter

MOST = 10_000
"""Entries of a page, if the client does not ask for fewer."""
_decode = json.Decoder(tuple[str, tuple[str, ...]]).decode


class PageRequest(NamedTuple):
    """Where a page begins, how many entries it has (None: all), and the state that it shows."""

    state: State
    after: ContentKey | None
    size: int | None

    def keys(self, namespace: ContentKey | None, type_: str) -> tuple[list[ContentKey], str | None]:
        """Returns the keys of a type directly in a namespace, and the token of the next page."""
        listed = (
            entry.key for entry in self.state.inside(namespace, self.after) if entry.type == type_
        )
        if self.size is None:
            return list(listed), None
        keys = list(islice(listed, self.size + 1))
        if len(keys) <= self.size:
            return keys, None
        keys.pop()
        return keys, _token(self.state, keys[-1])


def asked_page(call: IcebergCall) -> PageRequest:
    """Returns the page that a request asks for. Raises `InvalidInput`."""
    token = call.text("pageToken")
    if token is None:
        return PageRequest(call.state(), None, None)
    size = _size(call)
    if not token:
        return PageRequest(call.state(), None, size)
    try:
        hash_, elements = _decode(urlsafe_b64decode(token))
        after = ContentKey(elements)
    except (DecodeError, ValidationError, binascii.Error, ValueError, InvalidInput):
        raise InvalidInput("pageToken: was not issued by this server") from None
    return PageRequest(call.state_at(hash_), after, size)


def identifiers(call: IcebergCall, type_: str) -> Answer:
    """Returns the tables or views directly in the namespace of the path."""
    namespace, page = namespace_in(call.segments["namespace"]), asked_page(call)
    need_namespace(page.state, namespace)
    keys, token = page.keys(namespace, type_)
    shown = [{"namespace": namespace.elements, "name": key.elements[-1]} for key in keys]
    return Answer({"identifiers": shown, "next-page-token": token})


def _size(call: IcebergCall) -> int:
    try:
        size = call.number("pageSize")
    except UnreadableParameter as error:
        raise InvalidInput(error.message) from None
    if size is not None and size < 1:
        raise InvalidInput(f"pageSize: must be at least 1, not {size}")
    return min(size or MOST, MOST)


def _token(state: State, last: ContentKey) -> str:
    return urlsafe_b64encode(json.encode((state.reference.hash, last.elements))).decode()


_RENAME = "RenameTableRequest"

Need = Callable[[State, ContentKey], IcebergTable | IcebergView]
"""Returns the content of a key. Raises `NoSuchTable` or `NoSuchView`."""


def drop(call: IcebergCall, key: ContentKey, need: Need, kind: str) -> Answer:
    """Drops a table or view; `kind` names it in the commit message."""

    def make(state: State) -> Proposal[CommitResult] | None:
        need(state, key)
        return call.proposal(state, f"drop {kind} {key}", [Delete(key)])

    call.change(make)
    return NO_CONTENT


def rename(call: IcebergCall, need: Need, kind: str) -> Answer:
    """Renames the table or view in the body, which keeps its content id."""
    body = call.json_object(_RENAME)
    old = identifier_of(body, "source", _RENAME)
    new = identifier_of(body, "destination", _RENAME)

    def make(state: State) -> Proposal[CommitResult] | None:
        content = need(state, old)
        if old == new:
            return None
        need_free_for(state, old, new)
        operations: list[Operation] = [Delete(old), Put(new, content)]
        return call.proposal(state, f"rename {kind} {old} to {new}", operations)

    call.change(make)
    return NO_CONTENT
