"""The pipeline: the ASGI application that answers every request in one way.

A request is matched with an endpoint of its dialect, checked (host name, credentials, media types)
and read. It is answered from the cache, or by the handler on the thread of its effect. The answer
is compressed, sent, counted and logged. The event loop never waits for a store.
"""

from __future__ import annotations

import asyncio
import ssl
import traceback
from collections.abc import (
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
)
from functools import partial
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.errors import NessieError, NotInMemory
from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.gate import Admission, Catalog, Gate, Hosts
from nessie_cli.server.auth.local import LocalLogin
from nessie_cli.server.auth.oidc import OidcLogin
from nessie_cli.server.auth.reached import EARLY_DRAFTS
from nessie_cli.server.http.failures import AnswerDropped, ClientGone, HttpFault, Unavailable
from nessie_cli.server.http.messages import (
    JSON,
    LARGE,
    Arriving,
    Chunks,
    Headers,
    Limits,
    LiveChunks,
    Receive,
    Reply,
    TooMuchArrives,
    accepts_json,
    check_content_type,
    check_headers,
    compressed,
    decompress,
    drain,
    encoded,
    header,
    read_body,
)
from nessie_cli.server.http.streams import ListingBody
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.drafting import (
    MOST_CHANGES,
    draft_beside,
    plan_if_small,
    plan_of_draft,
)
from nessie_cli.server.pipeline.exchange import AccessLog, Exchange
from nessie_cli.server.pipeline.failures import stopped_error
from nessie_cli.server.pipeline.reads import Made, Read, Reads, may_be_cached, read_key
from nessie_cli.server.pipeline.table import (
    FORM,
    MERGES,
    READS,
    WRITES,
    WRITES_FILES,
    Endpoint,
    Match,
    NoRoute,
)
from nessie_cli.server.pipeline.targets import read_targets
from nessie_cli.server.runtime.answer_memory import AnswerMemory, Share
from nessie_cli.server.runtime.metrics import Metrics
from nessie_cli.server.runtime.row_request import RowLimits
from nessie_cli.server.runtime.thread_pool import BUSY, QueuedWrite, ThreadPool, closing_time
from nessie_cli.server.runtime.threads import Threads

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import Warehouses

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LONG = ("filter", "scan-commits")
"""The query parameters of reads that can take seconds: short reads do not wait for them."""
_WITHOUT_BODY = frozenset({204, 304})
_PART = 1 << 20
"""The bytes of a large answer that are sent at once. The next ones wait until they are read."""
_NO_CONTENT = 204
_TOO_LARGE = frozenset({413, 431})


class Dialect(NamedTuple):
    """An API of the server.

    `match` returns the endpoint of a method and raw path, and raises `NoRoute`. `call` makes what
    handlers get from a request, the catalog for its caller, and its body. `failure` makes the
    answer for an error. `readers` run the handlers that read. `variant` returns everything in the
    headers on which a cacheable answer depends, or None if it must not be cached. `admit` returns
    the admission of a request, by default that of its header `Authorization`. `pools` are further
    threads of the dialect.
    """

    match: Callable[[str, str], Match]
    call: Callable[[Exchange, Match, Catalog, bytes], Call]
    failure: Callable[[Exception, Exchange], Reply]
    readers: ThreadPool
    variant: Callable[[Headers], Hashable]
    admit: Callable[[Gate, Headers], Awaitable[Admission]] = Gate.admit
    pools: tuple[ThreadPool, ...] = ()


class Job(NamedTuple):
    """A request and the endpoint that answers it."""

    exchange: Exchange
    dialect: Dialect
    endpoint: Endpoint
    call: Call
    limits: Limits

    def read_body(self) -> int:
        """Reads the body as JSON, once. Returns the size of its text."""
        if not self.endpoint.takes_json or self.call.is_read:
            return 0
        body = decompress(self.call.body, self.exchange.headers, self.limits)
        self.call.take(body)
        return len(body)

    def read_small_body(self) -> bool:
        """Reads a compressed body if its text is small. Returns whether it is."""
        limits = self.limits._replace(decompressed=min(self.limits.decompressed, LARGE - 1))
        try:
            body = decompress(self.call.body, self.exchange.headers, limits)
        except HttpFault as fault:
            if fault.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                return False
            raise
        self.call.take(body)
        return True

    def failure(self, error: Exception) -> Reply:
        """Returns the answer for an error."""
        return self.dialect.failure(error, self.exchange)

    def reply(self, answer: Answer | Reply) -> Reply:
        """Encodes an answer."""
        return compressed(_reply_of(answer), self.exchange.headers)

    def steps(self) -> Iterator[Reply | None]:
        """Runs the handler in short steps. Only the last one returns the answer, not None."""
        try:
            self.read_body()
            answer = self.call.answer(self.endpoint.handler)
            if isinstance(answer, Answer) and isinstance(answer.body, ListingBody):
                yield from answer.body.search
            yield self.reply(answer)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            yield self.failure(error)

    def write(self, *, large: bool) -> QueuedWrite:
        """Returns the request for the writing thread. Nothing can fail after the commit."""
        return QueuedWrite(self.read_body, self._planned, self.failure, large, self.call.prefetch)

    def write_if_small(self) -> QueuedWrite:
        """Returns the request for the writing thread; the answer is None if that takes long."""
        plan = plan_if_small(partial(self._planned, most_changes=MOST_CHANGES))
        return self.write(large=False)._replace(plan=plan)

    def draft(self, repository: StoreRepository) -> Planned[Reply]:
        """Drafts and answers the request without the writing thread. An error is an answer."""

        def plan(state: StoreRepository) -> Planned[Reply]:
            self.read_body()
            return self._planned(state)

        try:
            return draft_beside(repository, plan, self.call.history, self.call.prefetch)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            return Planned(self.failure(error))

    def write_drafted(self, drafted: Planned[Reply], *, large: bool) -> QueuedWrite:
        """Returns a draft for the writing thread; the answer is None if the draft is stale."""
        plan = plan_of_draft(drafted, self.call.is_seen)
        return self.write(large=large)._replace(plan=plan)

    def _planned(
        self, repository: StoreRepository, *, most_changes: int | None = None
    ) -> Planned[Reply]:
        self.call.submission.most_changes = most_changes
        return self.call.plan(
            repository, lambda call: self.reply(call.answer(self.endpoint.handler))
        )


def _reply_of(answer: Answer | Reply) -> Reply:
    """Encodes an answer, if it is not encoded already."""
    if isinstance(answer, Reply):
        return answer
    if answer.status == _NO_CONTENT:
        return Reply(answer.status, [])
    value = answer.body.opened() if isinstance(answer.body, ListingBody) else answer.body
    headers = [(b"content-type", JSON)]
    if isinstance(value, Chunks):
        return Reply(answer.status, headers, chunks=value)
    return Reply(answer.status, headers, encoded(value))


class Parts(NamedTuple):
    """The parts of a server besides the catalog.

    Limits; the access log; the gate (without one, everybody has access); the TLS context; the
    metrics, if other processes count as well; the names of the server; the warehouses of its
    Iceberg REST catalog; what is called once the server is ready; the limits of reading rows; the
    URL under which browsers reach the server through a proxy; and the logins at an issuer. With
    `local`, only the pages answer, to one user.
    """

    limits: Limits = Limits()
    log: AccessLog | None = None
    gate: Gate | None = None
    tls: ssl.SSLContext | None = None
    metrics: Metrics | None = None
    hosts: Hosts = Hosts()
    warehouses: Warehouses | None = None
    started: Callable[[], None] | None = None
    rows: RowLimits = RowLimits()
    public_url: str = ""
    oidc: OidcLogin | None = None
    local: LocalLogin | None = None


class Pipeline:
    """Answers all requests. `dialects` are by the first segment of paths, "" for all others."""

    def __init__(
        self,
        catalog: Catalog,
        dialects: Mapping[str, Dialect],
        threads: Threads,
        parts: Parts,
    ) -> None:
        self.limits = parts.limits
        self.metrics = parts.metrics or Metrics()
        self.tls = parts.tls
        self.catalog = catalog
        self._dialects = dialects
        self._threads = threads
        self._gate = parts.gate
        self._hosts = parts.hosts
        self._log = parts.log
        self._started = parts.started
        self._running = 0
        self._reads = Reads(threads)
        self._arriving = Arriving(parts.limits.most_drained)
        self.answers = AnswerMemory(parts.limits.answers, parts.limits.answer_seconds)

    def close(self) -> None:
        """Finishes running requests and ends the threads, in `CLOSING` seconds altogether."""
        until = closing_time()
        self._threads.close(until)
        for dialect in self._dialects.values():
            for pool in (dialect.readers, *dialect.pools):
                pool.close(until)
        if self._log is not None:
            self._log.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of the web server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        self._running += 1
        self.metrics.running += 1
        exchange = Exchange(scope, receive)
        try:
            await self._answer(exchange, receive, send)
        finally:
            exchange.release()
            self._running -= 1
            self.metrics.running -= 1

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        tasks = [
            asyncio.create_task(self.metrics.keep_sharing()),
            asyncio.create_task(self._threads.bodies.keep_collecting()),
        ]
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup" and self._started is not None:
                self._started()
            if message["type"] == "lifespan.shutdown":
                for task in tasks:
                    task.cancel()
                self.metrics.share()
                self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        """Sends the answer to a request, or that for its error."""
        dialect = self._dialect(exchange.path)
        is_arriving = False
        try:
            reply = await self._held_reply(exchange, dialect, receive)
        except asyncio.CancelledError:
            # The web server cancels requests that have not ended some time after it was stopped.
            reply = dialect.failure(stopped_error(exchange), exchange)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            reply = dialect.failure(error, exchange)
            is_arriving = isinstance(error, TooMuchArrives)
        if is_arriving or (reply.status in _TOO_LARGE and not exchange.received):
            await drain(exchange.headers, receive, self.limits)
        headers = [*reply.headers, (b"x-request-id", exchange.id.encode())]
        if reply.is_large:
            await self._send_large(exchange, reply, headers, send)
        else:
            await self._send(exchange, reply, headers, send)

    def _dialect(self, path: str) -> Dialect:
        first = path.removeprefix("/").partition("/")[0]
        return self._dialects.get(first) or self._dialects[""]

    # -- the answer ------------------------------------------------------------------------------

    async def _held_reply(self, exchange: Exchange, dialect: Dialect, receive: Receive) -> Reply:
        """Returns the answer to a request; a large one has its share of their memory.

        One without a share is dropped, so answers that wait need no memory, and made again later.
        """
        reply = await self._reply(exchange, dialect, receive)
        if exchange.method == "HEAD" or not reply.is_large:
            return reply
        size, share = reply.held, self._share_of(exchange)
        if share.take(size):
            return reply
        if exchange.method == "GET":
            del reply
            lost = exchange.lost
            await share.wait(size)
            if lost():
                raise ClientGone
            reply = await self._reply(exchange, dialect, receive)
        # The state may have changed. Requests with bodies are not carried out again.
        try:
            share.resize(reply.held)
        except Unavailable:
            if exchange.is_write:
                raise AnswerDropped from None
            raise
        return reply

    def _share_of(self, exchange: Exchange) -> Share:
        """Returns the share of the answer to a request, which the exchange releases."""
        if exchange.share is None:
            exchange.share = self.answers.share()
        return exchange.share

    async def _reply(self, exchange: Exchange, dialect: Dialect, receive: Receive) -> Reply:
        headers = exchange.headers
        scope = exchange.scope
        if self._running > self.limits.connections:
            raise Unavailable(BUSY)
        path = len(scope["raw_path"])
        target = path + len(scope["query_string"])
        check_headers(path, target, headers, self.limits.head)
        self._hosts.check(exchange.method, scope["raw_path"], headers)
        try:
            match = dialect.match(exchange.method, exchange.path)
        except NoRoute:
            # Only callers learn which paths exist.
            await self._admit(exchange, dialect)
            raise
        endpoint = match.endpoint
        exchange.route, exchange.hides_query = endpoint.path, endpoint.hides_query
        exchange.is_write = endpoint.effect is not READS and endpoint.method != "GET"
        admission = None if endpoint.is_open else await self._admit(exchange, dialect)
        if not endpoint.is_page and not accepts_json(headers):
            raise HttpFault(
                406, "This API answers only with JSON, which the header Accept excludes"
            )
        if endpoint.takes_json or (endpoint.effect is not READS and endpoint.body != FORM):
            check_content_type(headers)
        body = await self._body(exchange, endpoint, receive) if endpoint.body else b""
        catalog = self.catalog
        if admission is not None:
            catalog = admission.catalog(catalog, scope["raw_path"], endpoint.right)
        if endpoint.cacheable and (variant := dialect.variant(headers)) is not None:
            # What a caller may see by a rule can depend on other references.
            has_rules = admission is not None and admission.rules is not None
            targets = None if has_rules else read_targets(match, catalog.default_branch)
            read = Read(
                read_key(exchange, endpoint, variant, admission),
                target,
                targets,
                partial(self._made, exchange, dialect, match),
                partial(self._made_at_once, exchange, dialect, match)
                if endpoint.is_short
                else None,
            )
            return await self._reads.answer(read, catalog)
        call = dialect.call(exchange, match, catalog, body)
        del body
        return await self._run(Job(exchange, dialect, endpoint, call, self.limits))

    async def _made(
        self, exchange: Exchange, dialect: Dialect, match: Match, catalog: Catalog
    ) -> Made:
        """Runs the handler of a read."""
        call = dialect.call(exchange, match, catalog, b"")
        reply = await self._run(Job(exchange, dialect, match.endpoint, call, self.limits))
        return Made(reply, call.local_file, may_be_cached(reply, match.endpoint, call))

    def _made_at_once(
        self, exchange: Exchange, dialect: Dialect, match: Match, catalog: Catalog
    ) -> Made | None:
        """Runs the handler of a short read, unless it needs what is not in memory."""
        call = dialect.call(exchange, match, catalog, b"")
        job = Job(exchange, dialect, match.endpoint, call, self.limits)
        try:
            reply = job.reply(call.answer(match.endpoint.handler))
        except NotInMemory:
            return None
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            reply = job.failure(error)
        return Made(reply, call.local_file, may_be_cached(reply, match.endpoint, call))

    async def _admit(self, exchange: Exchange, dialect: Dialect) -> Admission | None:
        """Returns the admission of the caller; None if everybody has access."""
        if self._gate is None:
            return None
        admission = await dialect.admit(self._gate, exchange.headers)
        exchange.principal = admission.caller.name
        exchange.session_ends = admission.session_ends
        return admission

    async def _body(self, exchange: Exchange, endpoint: Endpoint, receive: Receive) -> bytes:
        limits = self.limits
        if endpoint.body == FORM:
            limits = limits._replace(body=endpoint.most_form)
        body = await read_body(exchange.headers, receive, limits, self._arriving)
        exchange.received = len(body)
        return body

    async def _run(self, job: Job) -> Reply:
        """Runs a handler. A body waits for its turn if it is large, also only when expanded."""
        size, bodies = job.exchange.received, self._threads.bodies
        is_packed = bool(header(job.exchange.headers, b"content-encoding"))
        if job.endpoint.takes_json and (
            size >= LARGE or (is_packed and not await bodies.is_small(job.read_small_body))
        ):
            return await bodies.answer(
                size, job.read_body, partial(self._run_on_thread, job), job.call.free_body
            )
        return await self._run_on_thread(job, large=False)

    async def _run_on_thread(self, job: Job, large: bool) -> Reply:
        """Runs a handler on the thread of its effect. A large write has its own transaction."""
        handler, effect = job.endpoint.handler, job.endpoint.effect
        if iscoroutinefunction(handler):
            return await self._threads.packed(await handler(job.call), job.exchange.headers)
        if effect in (MERGES, WRITES):
            small = None if large else await self._threads.writer.submit(job.write_if_small())
            return small or await self._draft_and_write(job, large=large)
        step: Callable[[], Reply | None] = partial(next, job.steps())
        if effect is WRITES_FILES:
            reply = await self._threads.file_writers.submit(step)
            assert reply is not None
            return reply
        if any(map(job.call.text, LONG)):
            reply = await self._threads.long_readers.submit(step, job.exchange.lost)
        else:
            reply = await job.dialect.readers.submit(step)
        while reply is None:
            reply = await self._threads.long_readers.submit(step, job.exchange.lost, begun=True)
        return reply

    async def _draft_and_write(self, job: Job, *, large: bool) -> Reply:
        """Drafts a large write beside other writers, and commits the draft.

        It is drafted again if its branch moves meanwhile, at last by the writing thread.
        """
        repository, threads = self.catalog.repository, self._threads
        reply: Reply | None = None
        for number in range(EARLY_DRAFTS):
            drafted = await threads.drafters.submit(
                partial(job.draft, repository), begun=number > 0
            )
            if drafted.draft is None:
                return drafted.answer
            reply = await threads.writer.submit(job.write_drafted(drafted, large=large))
            if reply is not None:
                return reply
        reply = await threads.writer.submit(job.write(large=large))
        assert reply is not None
        return reply

    # -- sending ---------------------------------------------------------------------------------

    async def _send(self, exchange: Exchange, reply: Reply, headers: Headers, send: Send) -> None:
        if reply.status not in _WITHOUT_BODY:
            headers.append((b"content-length", b"%d" % len(reply.body)))
        body = b"" if exchange.method == "HEAD" else reply.body
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        exchange.done(reply.status, len(reply.body), self.metrics, self._log)

    async def _send_large(
        self, exchange: Exchange, reply: Reply, headers: Headers, send: Send
    ) -> None:
        """Sends an answer in parts, each when the client has read the one before.

        If the next chunk cannot be read, the status has been sent already, so the connection ends
        before the body does. It also ends if the client does not read a part in time.
        """
        if reply.chunks is None:
            headers.append((b"content-length", b"%d" % len(reply.body)))
        size, share = 0, self._share_of(exchange)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        try:
            chunk = b"" if exchange.method == "HEAD" else await self._first_chunk(exchange, reply)
            while chunk:
                share.resize(reply.held)
                for start in range(0, len(chunk), _PART):
                    part = chunk[start : start + _PART]
                    async with asyncio.timeout(self.limits.seconds):
                        await send({"type": "http.response.body", "body": part, "more_body": True})
                    size += len(part)
                # Drops the chunk before the next one is read.
                chunk = b""
                chunk = await self._next_chunk(exchange, reply)
            async with asyncio.timeout(self.limits.seconds):
                await send({"type": "http.response.body"})
        except TimeoutError:
            exchange.abort()
        except ClientGone:
            # The client has closed the connection, so the rest is not sent.
            pass
        except Exception as error:
            exchange.error = (
                error.message
                if isinstance(error, NessieError)
                else "".join(traceback.format_exception(error))
            )
            raise
        finally:
            if isinstance(reply.chunks, LiveChunks):
                await reply.chunks.close()
            exchange.done(reply.status, size, self.metrics, self._log)

    async def _first_chunk(self, exchange: Exchange, reply: Reply) -> bytes:
        return reply.body if reply.chunks is None else await self._next_chunk(exchange, reply)

    async def _next_chunk(self, exchange: Exchange, reply: Reply) -> bytes:
        """Returns the next chunk of an answer, empty after the last one."""
        if reply.chunks is None:
            return b""
        if isinstance(reply.chunks, LiveChunks):
            return await reply.chunks.read()
        return await self._threads.long_readers.submit(
            partial(next, reply.chunks, b""), exchange.lost, begun=True
        )
