"""Replies without an application: in one piece, or for a refused request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from weakref import ref

from msgspec import json
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from nessie_cli.server.failures import RETRY_AFTER, HttpFault, error_body
from nessie_cli.server.http import Headers, Limits, Receive, drain

TOO_MANY = 503


def send_at_once(
    answered: ref[RequestResponseCycle], status: int, headers: Headers, body: bytes
) -> bool:
    """Sends an answer in one piece. Returns whether that was possible.

    The base class would handle two messages and check each header: a third of its time for a
    request. The request refers to this function, so a strong reference back would keep it until the
    garbage collector runs.
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
    cycle.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n", body)))
    cycle.waiting_for_100_continue = False
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


def refusal(status: int, message: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Returns headers and body of a refusal in Nessie's form, after which the connection closes."""
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
    """Returns an application that refuses a request after discarding its rest."""

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
