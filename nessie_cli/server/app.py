"""The ASGI application: requests to handlers on threads of their own, answers back. The event loop itself never waits for a store.

Handlers that write run on one thread, one after the other, as the store would make them anyway; those that read run on several.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import MsgspecError, json

from nessie_cli.errors import NessieError
from nessie_cli.server.access_log import AccessLog
from nessie_cli.server.call import Answer, Call, Catalog
from nessie_cli.server.exchange import Exchange
from nessie_cli.server.failures import RETRY_AFTER, HttpFault, InternalFault, Unavailable, error_body, told
from nessie_cli.server.http import JSON, Headers, Limits, Reply, accepts_json, check_content_type, compressed, decompress, header, read_body
from nessie_cli.server.metrics import Metrics
from nessie_cli.server.table import Match, NoRoute, RouteTable
from nessie_cli.wire.leniency import lenient

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API = b"/api/v"
"""What the paths of the API begin with."""

_encode = json.Encoder().encode
_CONTENT_TYPE = (b"content-type", JSON)
_NO_CONTENT = 204
_UNAVAILABLE = 503


class Server:
    """Everything that answers requests: the API over a catalog, and beside it the pages of `beside`."""

    def __init__(self, catalog: Catalog, table: RouteTable, *, limits: Limits | None = None, readers: int = 4, log: AccessLog | None = None) -> None:
        self.catalog = catalog
        self.metrics = Metrics()
        self.beside: Application | None = None
        self._table = table
        self._limits = limits or Limits()
        self._log = log
        self._readers = ThreadPoolExecutor(readers, "reader")
        self._writer = ThreadPoolExecutor(1, "writer")

    def close(self) -> None:
        """Let what runs come to its end, and let go of the threads."""
        self._writer.shutdown()
        self._readers.shutdown()
        if self._log is not None:
            self._log.close()

    async def read(self, function: Callable[[], Any]) -> Any:
        """Run a function that reads the store on a reading thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, function)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of the web server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        exchange = Exchange(scope)
        self.metrics.running += 1
        try:
            if scope["raw_path"].startswith(API) or self.beside is None:
                await self._answer_api(exchange, receive, send)
            else:
                await self._answer_beside(exchange, receive, send)
        finally:
            self.metrics.running -= 1

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer_beside(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        status, sent = 500, 0

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", exchange.id.encode())]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        assert self.beside is not None
        try:
            await self.beside(exchange.scope, receive, watched)
        finally:
            # Starlette notes the route that it has found in the scope.
            route = exchange.scope.get("route")
            exchange.route = getattr(route, "path", exchange.route)
            exchange.done(status, sent, self.metrics, self._log)

    # -- the API ------------------------------------------------------------------------------------------------------------------

    async def _answer_api(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        headers: Headers = exchange.scope["headers"]
        try:
            reply = await self._reply(exchange, headers, receive)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            reply = failure(error, headers, exchange)
        sent = [*reply.headers, (b"x-request-id", exchange.id.encode())]
        if reply.status != _NO_CONTENT:
            sent.append((b"content-length", str(len(reply.body)).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if exchange.method == "HEAD" else reply.body})
        exchange.done(reply.status, len(reply.body), self.metrics, self._log)

    async def _reply(self, exchange: Exchange, headers: Headers, receive: Receive) -> Reply:
        scope = exchange.scope
        try:
            match = self._table.match(exchange.method, scope["raw_path"].decode("latin-1"))
        except NoRoute as missing:
            return no_route(exchange.method, missing, headers, exchange)
        exchange.route = match.route.path
        if not accepts_json(headers):
            raise HttpFault(406, "This API answers JSON only, and the header Accept does not take it")
        body = b""
        if match.route.body:
            check_content_type(headers)
            body = await read_body(headers, receive, self._limits)
            exchange.received = len(body)
        threads = self._writer if match.route.writes else self._readers
        return await asyncio.get_running_loop().run_in_executor(threads, self._run, exchange, match, headers, body)

    def _run(self, exchange: Exchange, match: Match, headers: Headers, body: bytes) -> Reply:
        """Run a handler; on a thread."""
        try:
            query = exchange.scope["query_string"].decode("latin-1")
            call = Call(self.catalog, match.segments, query, headers, decompress(body, headers, self._limits))
            with lenient():
                answer = match.route.handler(call)
            return compressed(reply_of(answer), headers)
        except NoRoute as missing:
            return no_route(exchange.method, missing, headers, exchange)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            return failure(error, headers, exchange)


def reply_of(answer: Answer) -> Reply:
    """An answer as bytes."""
    if answer.status == _NO_CONTENT:
        return Reply(_NO_CONTENT, [])
    try:
        body = _encode(answer.body)
    except (MsgspecError, OverflowError):
        # Numbers of a content of an unknown type may be longer than 64 bits.
        from json import dumps

        body = dumps(answer.body, ensure_ascii=False).encode()
    return Reply(answer.status, [_CONTENT_TYPE], body)


def failure(error: Exception, headers: Headers, exchange: Exchange) -> Reply:
    """The answer for a failure. What the client is not told goes into the log."""
    shown = told(error)
    if isinstance(shown, InternalFault | Unavailable):
        exchange.error = error.message if isinstance(error, NessieError) else "".join(traceback.format_exception(error))
    body = _encode(error_body(shown, header(headers, b"nessie-client-spec").decode("latin-1")))
    more = [(b"retry-after", RETRY_AFTER.encode())] if shown.status == _UNAVAILABLE else []
    return Reply(shown.status, [_CONTENT_TYPE, *more], body)


def no_route(method: str, missing: NoRoute, headers: Headers, exchange: Exchange) -> Reply:
    """The answer for a path that is unknown, or that does not take this method."""
    if not missing.allowed:
        return failure(HttpFault(404, "The API has no such path"), headers, exchange)
    taken = sorted({*missing.allowed, "OPTIONS", *(["HEAD"] if "GET" in missing.allowed else [])})
    allow = (b"allow", ", ".join(taken).encode())
    if method == "OPTIONS":
        return Reply(200, [allow])
    found = failure(HttpFault(405, f"This path takes {', '.join(missing.allowed)}, not {method}"), headers, exchange)
    return Reply(found.status, [*found.headers, allow], found.body)
