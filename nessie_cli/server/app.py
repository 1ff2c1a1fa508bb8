"""The ASGI application: passes requests to handlers on threads, and sends their answers.

The event loop never waits for a store. A handler that writes runs on the writing thread, in a group
with others (`writer`). A handler that reads runs on a reading thread (`readers`), unless its answer
is cached (`answers`).
"""

from __future__ import annotations

import asyncio
import ssl
import traceback
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.errors import NessieError
from nessie_cli.repository.base import Repository
from nessie_cli.repository.writing import Planned
from nessie_cli.server.answering import failure, replied, steps
from nessie_cli.server.auth.browsers import Hosts
from nessie_cli.server.auth.gate import Gate
from nessie_cli.server.call import Call, Catalog
from nessie_cli.server.exchange import Exchange
from nessie_cli.server.failures import ClientGone, HttpFault
from nessie_cli.server.http import (
    ARRIVED,
    AT_ONCE,
    LARGE,
    Arriving,
    Headers,
    Limits,
    Reply,
    TooMuchArrives,
    accepts_json,
    check_content_type,
    check_single,
    decompress,
    drain,
    header,
    read_body,
    takes_gzip,
)
from nessie_cli.server.runtime.access_log import AccessLog
from nessie_cli.server.runtime.answers import Answers, Versions
from nessie_cli.server.runtime.bodies import Bodies
from nessie_cli.server.runtime.metrics import Metrics
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.turns import Turns
from nessie_cli.server.runtime.writer import Write, Writer
from nessie_cli.server.table import Match, RouteTable
from nessie_cli.wire.extensions import HEADER

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.recorded import RecordedLocations
    from nessie_cli.iceberg.warehouses.warehouse import Warehouses
    from nessie_cli.server.iceberg_rest.api import IcebergRest

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API = b"/api/v"
"""The prefix of the paths of the API."""
ICEBERG = b"/iceberg"
"""The prefix of the paths of the Iceberg REST catalog."""
READERS = 2
"""The number of reading threads. The second one runs while the store reads its file."""
LONG_READERS = 1
"""The number of threads for long reads, such as filters, so that short reads do not wait."""

_OURS = HEADER.lower().encode()
_NOTHING: dict[str, Any] = {}
_NO_CONTENT = 204
_WITHOUT_BODY = frozenset({_NO_CONTENT, 304})
_OK = 200
_AT_ONCE = frozenset({_OK, 304})
"""The statuses of frequent answers, which are sent in one piece."""
_TOO_LARGE = 413


class Parts(NamedTuple):
    """The parts of a server besides the catalog.

    Limits; the access log; the gate (without one, everybody has access); the TLS context; the
    metrics, if other processes count as well; the names of the server; and the warehouses of its
    Iceberg REST catalog.
    """

    limits: Limits = Limits()
    log: AccessLog | None = None
    gate: Gate | None = None
    tls: ssl.SSLContext | None = None
    metrics: Metrics | None = None
    hosts: Hosts = Hosts()
    warehouses: Warehouses | None = None


class Server:
    """Answers all requests: the API over a catalog, and the pages of `beside`."""

    def __init__(self, catalog: Catalog, table: RouteTable, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.catalog = catalog._replace(
            filter_seconds=parts.limits.filter_seconds, locations=_recorded(parts.warehouses)
        )
        self.metrics = parts.metrics or Metrics()
        self.beside: Application | None = None
        self._table = table
        self.limits = parts.limits
        self.gate = parts.gate
        self._hosts = parts.hosts
        self.tls = parts.tls
        self._log = parts.log
        self._answers: Answers[Reply] = Answers(catalog.repository)
        self._versions = Versions(catalog.repository) if catalog.repository.version_waits else None
        self._readers = ThreadPool(READERS, most_waiting=parts.limits.reads)
        self._long_readers = ThreadPool(
            LONG_READERS, name="long-reader", most_waiting=parts.limits.long_reads
        )
        self._checkers = ThreadPool(1, name="checker")
        self._bodies = Bodies(most_waiting=parts.limits.most_drained)
        self._arriving = Arriving(parts.limits.most_drained)
        self.turns = Turns()
        self._writer = Writer(catalog.repository, most_waiting=parts.limits.writes)
        self._warehouses = parts.warehouses
        self._iceberg: IcebergRest | None = None
        if parts.warehouses is not None:
            self._open_iceberg()

    def close(self) -> None:
        """Finishes running requests and ends the threads."""
        if self._iceberg is not None:
            # Its threads wait for the writing thread.
            self._iceberg.close()
        self._writer.close()
        for threads in (
            self._bodies,
            self._readers,
            self._long_readers,
            self._checkers,
            self._versions,
        ):
            if threads is not None:
                threads.close()
        if self._log is not None:
            self._log.close()

    async def read(self, function: Callable[[], Any]) -> Any:
        """Runs a function on a reading thread."""
        return await self._readers.submit(function)

    async def check(self, function: Callable[[], Any]) -> Any:
        """Runs a function that checks the store, without delaying others."""
        return await self._checkers.submit(function)

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
            if is_iceberg(scope["raw_path"]):
                if self._iceberg is None:
                    # Loading its modules takes up to a second: not on the event loop.
                    await asyncio.to_thread(_load_iceberg)
                iceberg = self._open_iceberg()
                await self._answer_api(exchange, receive, send, iceberg.reply, iceberg.failure)
            elif (
                scope["raw_path"].startswith(API)
                or self.beside is None
                or self._is_foreign(exchange)
            ):
                await self._answer_api(exchange, receive, send, self._reply, failure)
            else:
                await self._answer_beside(exchange, receive, send)
        finally:
            self.metrics.running -= 1

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        sampling = asyncio.create_task(self.metrics.keep_sampling())
        collecting = asyncio.create_task(self._bodies.keep_collecting())
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                sampling.cancel()
                collecting.cancel()
                self.metrics.sample()
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
        except Exception as error:
            exchange.error = "".join(traceback.format_exception(error))
            raise
        finally:
            # Starlette stores the route in the scope.
            route = exchange.scope.get("route")
            exchange.route = getattr(route, "path", exchange.route)
            exchange.done(status, sent, self.metrics, self._log)

    # -- the API ----------------------------------------------------------------------------------
    def _open_iceberg(self) -> IcebergRest:
        """Returns the Iceberg REST catalog, whose modules are loaded on first use."""
        if self._iceberg is None:
            from nessie_cli.server.iceberg_rest.api import IcebergRest, Shared

            shared = Shared(
                self.catalog,
                self.gate,
                self._hosts,
                self.limits,
                self._writer,
                self._bodies,
                self._arriving,
                self._versions,
            )
            self._iceberg = IcebergRest(self._warehouses, shared)
        return self._iceberg

    async def _answer_api(
        self,
        exchange: Exchange,
        receive: Receive,
        send: Send,
        answer: Callable[[Exchange, Headers, Receive], Awaitable[Reply]],
        fail: Callable[[Exception, Headers, Exchange], Reply],
    ) -> None:
        """Sends the answer of `answer`, or of `fail` if it raises."""
        headers: Headers = exchange.scope["headers"]
        is_arriving = False
        try:
            check_single(headers)
            reply = await answer(exchange, headers, receive)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            reply = fail(error, headers, exchange)
            is_arriving = isinstance(error, TooMuchArrives)
        if is_arriving or (reply.status == _TOO_LARGE and not exchange.received):
            await drain(headers, receive, self.limits)
        sent = [*reply.headers, (b"x-request-id", exchange.id.encode())]
        if reply.pieces is not None:
            await self._send_pieces(exchange, reply, sent, send)
            return
        if reply.status not in _WITHOUT_BODY:
            sent.append((b"content-length", b"%d" % len(reply.body)))
        at_once = (
            exchange.scope.get("state", _NOTHING).get(AT_ONCE)
            if reply.status in _AT_ONCE and exchange.method != "HEAD"
            else None
        )
        if at_once is None or not at_once(reply.status, sent, reply.body):
            await send({"type": "http.response.start", "status": reply.status, "headers": sent})
            await send(
                {
                    "type": "http.response.body",
                    "body": b"" if exchange.method == "HEAD" else reply.body,
                }
            )
        exchange.done(reply.status, len(reply.body), self.metrics, self._log)

    async def _send_pieces(
        self, exchange: Exchange, reply: Reply, headers: Headers, send: Send
    ) -> None:
        """Sends an answer while it is read.

        If that fails, the status has been sent already, so the connection ends before the body
        does.
        """
        assert reply.pieces is not None
        size, lost = 0, exchange.lost
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        try:
            while exchange.method != "HEAD" and (
                piece := await self._long_readers.submit(
                    partial(next, reply.pieces, b""), lost, begun=True
                )
            ):
                size += len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})
        except ClientGone:
            pass
        except Exception as error:
            exchange.error = (
                error.message
                if isinstance(error, NessieError)
                else "".join(traceback.format_exception(error))
            )
            raise
        finally:
            exchange.done(reply.status, size, self.metrics, self._log)

    def _is_foreign(self, exchange: Exchange) -> bool:
        """Returns whether a request beside the API comes from a foreign web page."""
        try:
            self._hosts.check(
                exchange.method, exchange.scope["raw_path"], exchange.scope["headers"]
            )
        except HttpFault:
            return True
        return False

    async def _reply(self, exchange: Exchange, headers: Headers, receive: Receive) -> Reply:
        scope = exchange.scope
        self._hosts.check(exchange.method, scope["raw_path"], headers)
        catalog, callers, admission = self.catalog, None, None
        if self.gate is not None:
            admission = await self.gate.admit(headers)
            exchange.principal = admission.caller.name
        match = self._table.match(exchange.method, scope["raw_path"].decode("latin-1"))
        exchange.route = match.route.path
        if admission is not None:
            catalog, callers = (
                admission.catalog(catalog, scope["raw_path"], match.route.right),
                admission.scope,
            )
        if not accepts_json(headers):
            raise HttpFault(
                406, "This API answers only with JSON, which the header Accept excludes"
            )
        body = b""
        if match.route.body or match.route.writes:
            check_content_type(headers)
        if match.route.body:
            body = await read_body(
                headers,
                receive,
                self.limits,
                self._arriving,
                arrived=ARRIVED in scope.get("state", _NOTHING),
            )
            exchange.received = len(body)
        elif not match.route.writes:
            return await self._read(exchange, match, headers, (catalog, callers))
        call = Call(catalog, match.segments, scope["query_string"].decode("latin-1"), headers, body)
        prepare = partial(self._prepare, call, headers)
        if len(body) >= LARGE or header(headers, b"content-encoding"):
            # The call drops the body as soon as it is read.
            del body
            answer = partial(self._answer_call, exchange, match, call, _nothing)
            return await self._bodies.answer(exchange.received, prepare, answer)
        return await self._answer_call(exchange, match, call, prepare, large=False)

    async def _answer_call(
        self,
        exchange: Exchange,
        match: Match,
        call: Call,
        prepare: Callable[[], object],
        large: bool,
    ) -> Reply:
        """Answers a request with a body. The write of a large one gets its own transaction."""
        headers: Headers = exchange.scope["headers"]
        if match.route.writes:
            plan = partial(_planned, call, partial(replied, match, headers))
            refuse = partial(failure, headers=headers, exchange=exchange)
            reply: Reply = await self._writer.submit(
                Write(prepare, plan, refuse, large=large, begin=call.begin)
            )
            return reply
        if prepare is not _nothing:
            await self._readers.submit(prepare, exchange.lost)
        return await self._in_steps(exchange, match, call, headers)

    async def _read(
        self, exchange: Exchange, match: Match, headers: Headers, seen: tuple[Catalog, Hashable]
    ) -> Reply:
        """Answers a read without a body.

        `seen` is the catalog for this caller, and the scope in which answers may be shared.
        """
        scope = exchange.scope
        catalog, callers = seen
        wanted: Hashable = None
        version = None
        if match.route.lasts:
            version = (
                self._answers.version() if self._versions is None else await self._versions.ask()
            )
        if version is not None:
            wanted = (
                scope["raw_path"],
                scope["query_string"],
                takes_gzip(headers),
                _OURS in dict(headers),
                callers,
            )
            if (known := self._answers.find(wanted, version)) is not None:
                return known
        call = Call(catalog, match.segments, scope["query_string"].decode("latin-1"), headers)
        reply = await self._in_steps(exchange, match, call, headers)
        if (
            wanted is not None
            and reply.status == _OK
            and reply.pieces is None
            and match.route.takes(call.parameters)
        ):
            self._answers.keep(
                wanted, version, reply, len(scope["raw_path"]) + len(scope["query_string"])
            )
        return reply

    def _prepare(self, call: Call, headers: Headers) -> int:
        """Reads the body of a call as JSON, on a thread. Returns the size of its text."""
        body = decompress(call.body, headers, self.limits)
        call.take(body)
        return len(body)

    async def _in_steps(
        self, exchange: Exchange, match: Match, call: Call, headers: Headers
    ) -> Reply:
        """Runs a handler that reads, on a reading thread, interleaved with others."""
        lost = exchange.lost
        found = steps(match, headers, call, exchange)
        lane = self._long_readers if call.text("filter") else self._readers
        reply: Reply | None = await lane.submit(partial(next, found), lost)
        while reply is None:
            reply = await self._long_readers.submit(partial(next, found), lost, begun=True)
        return reply


def is_iceberg(path: bytes) -> bool:
    """Returns whether a path belongs to the Iceberg REST catalog."""
    return path == ICEBERG or path.startswith(ICEBERG + b"/")


def _load_iceberg() -> ModuleType:
    from nessie_cli.server.iceberg_rest import api

    return api


def _nothing() -> None:
    """Does nothing, for a body that has been read already."""


def _planned(call: Call, handle: Callable[[Call], Reply], repository: Repository) -> Planned[Reply]:
    """Plans a request that writes, on the writing thread."""
    return call.plan(repository, handle)


def _recorded(warehouses: Warehouses | None) -> RecordedLocations | None:
    if warehouses is None:
        return None
    from nessie_cli.iceberg.warehouses.recorded import RecordedLocations

    return RecordedLocations(warehouses.all)
