"""Encodes the answer of a handler, or of its failure."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from msgspec import json

from nessie_cli.errors import NessieError
from nessie_cli.server.auth.identity import Unauthenticated
from nessie_cli.server.call import Answer, Call
from nessie_cli.server.exchange import Exchange
from nessie_cli.server.failures import (
    RETRY_AFTER,
    HttpFault,
    InternalFault,
    Unavailable,
    client_error,
    error_body,
)
from nessie_cli.server.http import JSON, Headers, Reply, compressed, header
from nessie_cli.server.streams import Listing, encoded
from nessie_cli.server.table import Match, NoRoute
from nessie_cli.wire.validation import lenient

_encode = json.Encoder().encode
_CONTENT_TYPE = (b"content-type", JSON)
_NO_CONTENT = 204
_UNAVAILABLE = 503
_TOO_LARGE = 413
_CLOSING = frozenset({408, _TOO_LARGE})
"""Statuses after which the connection is closed, because the client may still be sending."""


def replied(match: Match, headers: Headers, call: Call) -> Reply:
    """Handles a request and encodes its answer, on a thread. A write is committed afterwards.

    Nothing can fail after the commit.
    """
    with lenient():
        answer = match.route.handler(call)
    return compressed(reply_of(answer), headers)


def steps(match: Match, headers: Headers, call: Call, exchange: Exchange) -> Iterator[Reply | None]:
    """Handles a request that reads, in short steps.

    Only the last one returns the answer, not None.
    """
    try:
        with lenient():
            answer = match.route.handler(call)
        if isinstance(answer.body, Listing):
            yield from answer.body.search
        yield compressed(reply_of(answer), headers)
    except Exception as error:  # noqa: BLE001 - every failure becomes an answer
        yield failure(error, headers, exchange)


def reply_of(answer: Answer) -> Reply:
    """Encodes an answer."""
    if answer.status == _NO_CONTENT:
        return Reply(_NO_CONTENT, [])
    value = answer.body.opened() if isinstance(answer.body, Listing) else answer.body
    if isinstance(value, Iterator):
        return Reply(answer.status, [_CONTENT_TYPE], pieces=value)
    return Reply(answer.status, [_CONTENT_TYPE], encoded(value))


def failure(error: Exception, headers: Headers, exchange: Exchange) -> Reply:
    """Returns the answer for a failure. Details that clients must not see go into the log."""
    if isinstance(error, NoRoute):
        return no_route(error, headers, exchange)
    shown = client_error(error)
    if isinstance(shown, InternalFault | Unavailable):
        exchange.error = (
            error.message
            if isinstance(error, NessieError)
            else "".join(traceback.format_exception(error))
        )
    # Drops the frames of the error, which refer to the body, and often to the error itself.
    error.__traceback__ = error.__context__ = None
    body = _encode(error_body(shown, header(headers, b"nessie-client-spec").decode("latin-1")))
    more = [(b"retry-after", RETRY_AFTER.encode())] if shown.status == _UNAVAILABLE else []
    if isinstance(shown, Unauthenticated):
        more.append((b"www-authenticate", shown.challenge))
    if shown.status in _CLOSING:
        more.append((b"connection", b"close"))
    return Reply(shown.status, [_CONTENT_TYPE, *more], body)


def no_route(missing: NoRoute, headers: Headers, exchange: Exchange) -> Reply:
    """Returns the answer for an unknown path, or for a method that the path does not have."""
    if not missing.allowed:
        return failure(HttpFault(404, "The API has no such path"), headers, exchange)
    taken = sorted({*missing.allowed, "OPTIONS", *(["HEAD"] if "GET" in missing.allowed else [])})
    allow = (b"allow", ", ".join(taken).encode())
    if exchange.method == "OPTIONS":
        return Reply(200, [allow])
    found = failure(
        HttpFault(405, f"This path takes {', '.join(missing.allowed)}, not {exchange.method}"),
        headers,
        exchange,
    )
    return Reply(found.status, [*found.headers, allow], found.body)
