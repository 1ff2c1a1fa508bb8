"""Answers that are put together without an application: in one piece, or for a request that is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from weakref import ref

from msgspec import json
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from nessie_cli.server.failures import RETRY_AFTER, HttpFault, error_body
from nessie_cli.server.http import Headers, Limits, Receive, drain

TOO_MANY = 503
_OK = 200


def send_at_once(answered: ref[RequestResponseCycle], headers: Headers, body: bytes) -> bool:
    """Send an answer of status 200 in one piece; whether that could be done. Its headers are well-formed and tell the length of the body.

    The base would take two messages, look at each header and put together what is known here: a third of its time for a request.
    The request leads to this function, so a strong reference back would keep it until the garbage collector runs.
    """
    cycle = answered()
    if (
        cycle is None
        or cycle.disconnected
        or cycle.response_started
        or not cycle.keep_alive
        or cycle.flow.write_paused
    ):
        return False
    lines = [b"%s: %s\r\n" % header for header in (*cycle.default_headers, *headers)]
    cycle.transport.write(b"".join((STATUS_LINE[_OK], *lines, b"\r\n", body)))
    cycle.waiting_for_100_continue = False
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


def refusal(status: int, message: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a refusal in Nessie's form, after which the connection is closed."""
    code = "SERVICE_UNAVAILABLE" if status == TOO_MANY else "BAD_REQUEST"
    body = json.encode(error_body(HttpFault(status, message, code), ""))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    return [
        *headers,
        (b"retry-after", RETRY_AFTER.encode()),
    ] if status == TOO_MANY else headers, body


def refusing(status: int, message: str, limits: Limits) -> Callable[..., Awaitable[None]]:
    """An application that refuses a request when its client has been heard out."""

    async def answer(
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        await drain(scope["headers"], receive, limits)
        headers, body = refusal(status, message)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer
