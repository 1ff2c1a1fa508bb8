"""The ASGI application: requests to handlers on threads of their own, answers back. The event loop itself never waits for a store.

Handlers that write run on one thread, one after the other, as the store would make them anyway; those that read run on several.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import MsgspecError, json

from nessie_cli.server.call import Answer, Call, Catalog
from nessie_cli.server.failures import RETRY_AFTER, HttpFault, error_body, told
from nessie_cli.server.http import JSON, Headers, Limits, Reply, accepts_json, check_content_type, compressed, decompress, header, too_large
from nessie_cli.server.table import Match, NoRoute, RouteTable
from nessie_cli.wire.leniency import lenient

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_encode = json.Encoder().encode
_CONTENT_TYPE = (b"content-type", JSON)


class Api:
    """Answers the requests of one route table over one catalog."""

    def __init__(self, catalog: Catalog, table: RouteTable, *, limits: Limits | None = None, readers: int = 4) -> None:
        self._catalog = catalog
        self._table = table
        self._limits = limits or Limits()
        self._readers = ThreadPoolExecutor(readers, "reader")
        self._writer = ThreadPoolExecutor(1, "writer")

    def close(self) -> None:
        """Let what runs come to its end, and let go of the threads."""
        self._writer.shutdown()
        self._readers.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        headers: Headers = scope["headers"]
        try:
            reply = await self._reply(scope, headers, receive)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            reply = failure(error, headers)
        await _send(reply, scope["method"] == "HEAD", send)

    async def _reply(self, scope: Scope, headers: Headers, receive: Receive) -> Reply:
        method = scope["method"]
        path = scope["raw_path"].decode("latin-1")
        try:
            match = self._table.match(method, path)
        except NoRoute as missing:
            return _no_route(method, missing, headers)
        if not accepts_json(headers):
            raise HttpFault(406, "This API answers JSON only, and the header Accept does not take it")
        body = b""
        if match.route.body:
            check_content_type(headers)
            body = await read_body(headers, receive, self._limits)
        threads = self._writer if match.route.writes else self._readers
        query = scope["query_string"].decode("latin-1")
        return await asyncio.get_running_loop().run_in_executor(threads, self._answer, match, query, headers, body)

    def _answer(self, match: Match, query: str, headers: Headers, body: bytes) -> Reply:
        """Run a handler; on a thread."""
        try:
            call = Call(self._catalog, match.segments, query, headers, decompress(body, headers, self._limits))
            with lenient():
                answer = match.route.handler(call)
            return compressed(reply_of(answer), headers)
        except NoRoute as missing:
            return _no_route(match.route.method, missing, headers)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            return failure(error, headers)


def reply_of(answer: Answer) -> Reply:
    """An answer as bytes."""
    if answer.status == 204:  # noqa: PLR2004 - "no content"
        return Reply(204, [])
    try:
        body = _encode(answer.body)
    except (MsgspecError, OverflowError):
        # Numbers of a content of an unknown type may be longer than 64 bits.
        from json import dumps

        body = dumps(answer.body, ensure_ascii=False).encode()
    return Reply(answer.status, [_CONTENT_TYPE], body)


def failure(error: Exception, headers: Headers) -> Reply:
    """The answer for a failure."""
    shown = told(error)
    body = _encode(error_body(shown, header(headers, b"nessie-client-spec").decode("latin-1")))
    more = [(b"retry-after", RETRY_AFTER.encode())] if shown.status == 503 else []  # noqa: PLR2004 - "service unavailable"
    return Reply(shown.status, [_CONTENT_TYPE, *more], body)


def _no_route(method: str, missing: NoRoute, headers: Headers) -> Reply:
    if not missing.allowed:
        return failure(HttpFault(404, "The API has no such path"), headers)
    allow = (b"allow", ", ".join(sorted({*missing.allowed, "OPTIONS", *(["HEAD"] if "GET" in missing.allowed else [])})).encode())
    if method == "OPTIONS":
        return Reply(200, [allow])
    found = failure(HttpFault(405, f"This path takes {', '.join(missing.allowed)}, not {method}"), headers)
    return Reply(found.status, [*found.headers, allow], found.body)


async def read_body(headers: Headers, receive: Receive, limits: Limits) -> bytes:
    """The body as it was sent; raises when it is larger than it may be, as early as that is known."""
    announced = header(headers, b"content-length")
    if announced.isdigit() and int(announced) > limits.body:
        raise too_large(f"is larger than {limits.body} bytes")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpFault(400, "body: the client went away", "BAD_REQUEST")
        part = message.get("body", b"")
        size += len(part)
        if size > limits.body:
            raise too_large(f"is larger than {limits.body} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _send(reply: Reply, without_body: bool, send: Send) -> None:
    headers = reply.headers if reply.status == 204 else [*reply.headers, (b"content-length", str(len(reply.body)).encode())]  # noqa: PLR2004
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if without_body else reply.body})
