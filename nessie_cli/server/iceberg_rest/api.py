"""The Iceberg REST catalog: runs the endpoint of each request on the catalog's threads.

Requests read and write metadata files, so they run on neither the event loop nor the writing
thread. While one waits for its commit, its thread waits with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

from nessie_cli.iceberg.files import scheme_of
from nessie_cli.iceberg.warehouses.byte_cache import ByteCache
from nessie_cli.iceberg.warehouses.issuing import Issuer
from nessie_cli.iceberg.warehouses.metadata_files import LocalFile, MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.server.auth.browsers import Hosts
from nessie_cli.server.auth.gate import Gate
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.call import Catalog
from nessie_cli.server.exchange import Exchange
from nessie_cli.server.failures import HttpFault
from nessie_cli.server.http import (
    ARRIVED,
    LARGE,
    Arriving,
    Headers,
    Limits,
    Receive,
    Reply,
    accepts_json,
    check_content_type,
    compressed,
    decompress,
    header,
    read_body,
    takes_gzip,
)
from nessie_cli.server.iceberg_rest import errors, oauth, routes
from nessie_cli.server.iceberg_rest.delegation import Delegation
from nessie_cli.server.iceberg_rest.endpoints import SIGN, Endpoint
from nessie_cli.server.iceberg_rest.idempotency import Idempotency
from nessie_cli.server.iceberg_rest.prefix import BELOW
from nessie_cli.server.iceberg_rest.session import DELEGATION, IcebergCall, Services, Session
from nessie_cli.server.runtime.answers import Answers, Versions
from nessie_cli.server.runtime.batches import Batches
from nessie_cli.server.runtime.bodies import Bodies
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.writer import Writer

WRITERS = 16
"""Threads for requests that write. They wait for their commits, so that many share one."""
LOCAL_READERS, REMOTE_READERS = 2, 16
"""Reading threads if all warehouses are local, and if threads wait for object stores.

Python runs one thread at a time. More of them only hinder each other unless they wait.
"""
_NOTHING: dict[str, Any] = {}


class Shared(NamedTuple):
    """The parts of the server that the catalog uses."""

    catalog: Catalog
    gate: Gate | None
    hosts: Hosts
    limits: Limits
    writer: Writer
    bodies: Bodies
    arriving: Arriving
    versions: Versions | None = None
    """How the version of a remote store is read."""


class _Cached(NamedTuple):
    """A cached answer, and the local file from which it was made."""

    reply: Reply
    file: LocalFile | None

    @property
    def body(self) -> bytes:
        """The bytes of the answer."""
        return self.reply.body


class NoWarehouse(errors.Refused):
    """The server has no warehouse, so it has no Iceberg REST catalog."""

    status = 404
    type = "NotFoundException"

    def __init__(self) -> None:
        super().__init__(
            "this server has no warehouse for Iceberg tables. Hint: start it with"
            " `nessie serve --warehouse URI`"
        )


class IcebergRest:
    """Answers requests below `/iceberg`; every request fails if there are no warehouses."""

    def __init__(self, warehouses: Warehouses | None, shared: Shared) -> None:
        self._shared = shared
        self._readers = ThreadPool(
            _readers_for(warehouses), name="iceberg-reader", most_waiting=shared.limits.reads
        )
        self._writers = ThreadPool(
            WRITERS, name="iceberg-writer", most_waiting=shared.limits.writes
        )
        self._answers: Answers[_Cached] = Answers(shared.catalog.repository)
        self._files_unchanged = Batches(
            _unchanged, name="iceberg-file", most_waiting=shared.limits.reads
        )
        self._services = None if warehouses is None else _services(warehouses, shared.writer)

    def close(self) -> None:
        """Finish what waits, and let the threads end."""
        self._files_unchanged.close()
        self._readers.close()
        self._writers.close()

    async def reply(self, exchange: Exchange, headers: Headers, receive: Receive) -> Reply:
        """Returns the answer of a request. `failure` converts the errors that it raises."""
        scope = exchange.scope
        self._shared.hosts.check(exchange.method, scope["raw_path"], headers)
        if self._services is None:
            raise NoWarehouse
        match = routes.match(exchange.method, scope["raw_path"].decode("latin-1"))
        exchange.route = BELOW + match.endpoint.path
        # The query contains the grant of remote signing, so it is not logged.
        exchange.hides_query = match.endpoint is SIGN
        if match.endpoint.handler is None:
            form = self._shared.limits._replace(body=oauth.MOST_BYTES)
            body = await self._body(exchange, headers, receive, form)
            return await oauth.token(self._shared.gate, headers, body)
        catalog, caller, callers = self._shared.catalog, Caller(), None
        if self._shared.gate is not None:
            admission = await self._shared.gate.admit(headers)
            caller = admission.caller
            exchange.principal = caller.name
            catalog = admission.catalog(catalog, scope["raw_path"])
            callers = admission.scope
        if not accepts_json(headers):
            raise HttpFault(
                406, "This API answers only with JSON, which the header Accept excludes"
            )
        body = b""
        if match.endpoint.has_body:
            check_content_type(headers)
            body = await self._body(exchange, headers, receive, self._shared.limits)
        request: Hashable = None
        if match.endpoint.lasts and not header(headers, DELEGATION):
            request, version = _key(exchange, headers, callers), await self._version()
            known = self._answers.find(request, version)
            if known is not None and (
                known.file is None or await self._files_unchanged.ask(known.file)
            ):
                return known.reply
        query = scope["query_string"]
        call = IcebergCall(catalog, match.segments, query.decode("latin-1"), headers, body)
        call.who = caller.name
        call.scheme = scope["scheme"]
        call.target = f"{exchange.method} {scope['raw_path']!r} {query!r}"
        session = Session(call, catalog, match.prefix, self._services)
        del body
        reply = await self._answer(exchange, session, match.endpoint)
        if request is not None:
            known = _Cached(reply, session.local_file)
            self._answers.keep(request, version, known, len(scope["raw_path"]) + len(query))
        return reply

    async def _answer(self, exchange: Exchange, session: Session, endpoint: Endpoint) -> Reply:
        """Runs an endpoint on a thread; a large or compressed body waits for its turn."""
        headers: Headers = exchange.scope["headers"]
        run = partial(self._run, session, endpoint, headers)
        lane = self._writers if endpoint.writes else self._readers
        lost = None if endpoint.writes else exchange.lost
        if exchange.received >= LARGE or header(headers, b"content-encoding"):
            read = partial(self._prepare, session, headers)
            return await self._shared.bodies.answer(
                exchange.received, read, lambda _: lane.submit(run, lost)
            )
        if endpoint.has_body:
            run = partial(self._read_and_run, session, endpoint, headers)
        return await lane.submit(run, lost)

    async def _version(self) -> Hashable | None:
        versions = self._shared.versions
        return self._answers.version() if versions is None else await versions.ask()

    @staticmethod
    def failure(error: Exception, headers: Headers, exchange: Exchange) -> Reply:  # noqa: ARG004 - as the other API
        """Returns the answer for a failure."""
        return errors.failure(error, exchange)

    async def _body(
        self, exchange: Exchange, headers: Headers, receive: Receive, limits: Limits
    ) -> bytes:
        arrived = ARRIVED in exchange.scope.get("state", _NOTHING)
        body = await read_body(headers, receive, limits, self._shared.arriving, arrived=arrived)
        exchange.received = len(body)
        return body

    def _prepare(self, session: Session, headers: Headers) -> int:
        """Reads the body of a call as JSON, on a thread. Returns the size of its text."""
        call = session.call
        call.sent = call.body
        body = decompress(call.body, headers, self._shared.limits)
        call.take(body)
        return len(body)

    def _read_and_run(self, session: Session, endpoint: Endpoint, headers: Headers) -> Reply:
        self._prepare(session, headers)
        return self._run(session, endpoint, headers)

    def _run(self, session: Session, endpoint: Endpoint, headers: Headers) -> Reply:
        """Runs the handler of an endpoint; on a thread of the catalog."""
        assert endpoint.handler is not None
        handle: Callable[[], Reply] = partial(endpoint.handler, session)
        return compressed(session.once(handle) if endpoint.writes else handle(), headers)


def _key(exchange: Exchange, headers: Headers, callers: Hashable) -> Hashable:
    """Returns all of a request on which its answer depends, besides the store."""
    path, query = exchange.scope["raw_path"], exchange.scope["query_string"]
    known_to_client = tuple(value for name, value in headers if name == b"if-none-match")
    return exchange.method, path, query, known_to_client, takes_gzip(headers), callers


def _unchanged(files: Sequence[LocalFile]) -> list[bool]:
    """Returns of each file whether it is still the same."""
    looked_at = {file: file.is_unchanged() for file in set(files)}
    return [looked_at[file] for file in files]


def _readers_for(warehouses: Warehouses | None) -> int:
    """Returns how many threads read."""
    known = warehouses.all if warehouses is not None else ()
    local = all(scheme_of(one.location) == "file" for one in known)
    return LOCAL_READERS if local else REMOTE_READERS


def _services(warehouses: Warehouses, writer: Writer) -> Services:
    files = {one.name: MetadataFiles(one) for one in warehouses.all}

    def files_of(warehouse: Warehouse) -> MetadataFiles:
        return files[warehouse.name]

    return Services(
        warehouses,
        files_of,
        writer,
        Issuer(warehouses.secret),
        Delegation(warehouses),
        Idempotency(),
        ByteCache(),
    )
