"""Starts and stops the server."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from msgspec import Struct

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.repository.base import Repository
from nessie_cli.server.app import Parts, Server
from nessie_cli.server.auth.browsers import Hosts
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.call import Catalog
from nessie_cli.server.extensions import EXTENSIONS
from nessie_cli.server.http import Limits
from nessie_cli.server.pages import management_pages, pages
from nessie_cli.server.pieces import Pieces
from nessie_cli.server.routes import ROUTES
from nessie_cli.server.runtime.access_log import AccessLog
from nessie_cli.server.runtime.connections import configuration
from nessie_cli.server.runtime.management import Management
from nessie_cli.server.runtime.memory import collect_rarely
from nessie_cli.server.runtime.metrics import Metrics
from nessie_cli.server.runtime.tls import RenewedContext, Tls
from nessie_cli.server.runtime.watched_files import report_on_stderr
from nessie_cli.server.runtime.workers import HEALTHCHECK, SharedLog, Workers, listen, set_ready
from nessie_cli.server.table import RouteTable


class Settings(NamedTuple):
    """The settings of a server.

    Its address, limits, number of processes, authentication, TLS, names, the warehouses of its
    Iceberg REST catalog, and the port that answers only health checks and metrics, if any.
    """

    host: str = "127.0.0.1"
    port: int = 19120
    insecure: bool = False
    limits: Limits = Limits()
    workers: int = 1
    security: Security = Security()
    tls: Tls | None = None
    allowed_hosts: tuple[str, ...] = ()
    warehouses: Warehouses | None = None
    management_port: int | None = None

    @property
    def hosts(self) -> Hosts:
        """The names under which the server answers."""
        if is_loopback(self.host):
            return Hosts((*self.allowed_hosts, self.host))
        # With required tokens, a page cannot act for a user, under whatever name.
        every = (
            self.security.authenticates and not self.security.anonymous and not self.allowed_hosts
        )
        wildcard = self.host in ("", "0", "0.0.0.0", "::")  # noqa: S104 - compared, not listened on
        return Hosts(
            self.allowed_hosts if wildcard else (*self.allowed_hosts, self.host),
            addresses=not self.allowed_hosts,
            every=every,
        )


class Listeners(NamedTuple):
    """The callbacks of the running server.

    `started` is called with its URL, `log` with lines of its log: of every request, or with
    `faults` only of failures of the server.
    """

    started: Callable[[str], None]
    log: Callable[[bytes], object] | None = None
    faults: bool = False


def is_loopback(host: str) -> bool:
    """Returns whether an address is only reachable from this machine; of a name, all addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        return host == "localhost"
    return bool(found) and all(
        ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found
    )


def application(repository: Repository, parts: Parts | None = None) -> Server:
    """Returns the ASGI application over a repository."""
    server = Server(*_content(repository), parts)
    server.beside = pages(server)
    return server


def _content(repository: Repository) -> tuple[Catalog, RouteTable]:
    return Catalog(repository, repository.config().default_branch, Pieces()), RouteTable(
        (*ROUTES, *EXTENSIONS)
    )


def check_address(settings: Settings) -> None:
    """Raises `NotAllowed` for a public address without authentication, unless it is intended."""
    if (
        settings.insecure
        or settings.allowed_hosts
        or settings.security.restricts_anonymous
        or is_loopback(settings.host)
    ):
        return
    raise NotAllowed(
        f"{settings.host}: other machines can reach this address, and callers need no credentials."
        " Hint: use --tokens FILE without --anonymous, or allow it with --allowed-host NAME or"
        " --insecure"
    )


def cannot_listen(settings: Settings) -> StoreUnavailable:
    """Returns the error for an address that cannot be used for listening."""
    return StoreUnavailable(
        f"cannot listen on {settings.host}:{settings.port}. Hint: check that the port is free and"
        " that the address belongs to this machine"
    )


def url_of(address: tuple[Any, ...], *, tls: bool) -> str:
    """Returns the URL of a socket's address."""
    host, port = address[:2]
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def serve(opened: Callable[[], Repository], settings: Settings, listeners: Listeners) -> None:
    """Serves a repository until SIGTERM or SIGINT; finishes accepted requests.

    `opened` opens the repository, once in each process. Raises `NotAllowed` for a public address
    without authentication unless it is intended, `StoreUnavailable` for an address in use, and
    `InvalidInput` for several processes over a store in memory.
    """
    check_address(settings)
    if settings.security.authenticates and settings.tls is None and not is_loopback(settings.host):
        report_on_stderr(
            f"tokens for {settings.host} travel unencrypted; --tls-cert, or a proxy in front that"
            " speaks TLS, protects them"
        )
    if settings.workers > 1:
        _serve_together(opened, settings, listeners)
        return
    with opened() as repository, _management_listener(settings) as management:
        app = application(repository, _parts(settings, listeners, repository))
        server = Uvicorn(
            configuration(app, host=settings.host, port=settings.port), listeners.started
        )
        collect_rarely()
        # uvicorn exits if it cannot listen.
        with _managed(app, management), suppress(SystemExit):
            server.run()
    if not server.started:
        raise cannot_listen(settings)


@contextmanager
def _management_listener(settings: Settings) -> Iterator[socket.socket | None]:
    """Yields the listening socket of the management port, if there is one."""
    if settings.management_port is None:
        yield None
        return
    try:
        listener = listen(settings.host, settings.management_port)
    except OSError:
        raise cannot_listen(settings._replace(port=settings.management_port)) from None
    with listener:
        yield listener


@contextmanager
def _managed(server: Server, listener: socket.socket | None) -> Iterator[None]:
    """Answers health checks and metrics on a listening socket within the block."""
    if listener is None:
        yield
        return
    management = Management(management_pages(server), listener)
    try:
        yield
    finally:
        management.close()


def _parts(settings: Settings, listeners: Listeners, repository: Repository) -> Parts:
    """Returns the parts of a server in this process."""
    gate = open_gate(settings.security, repository)
    tls = RenewedContext(settings.tls) if settings.tls else None
    log = AccessLog(listeners.log, faults=listeners.faults) if listeners.log else None
    return Parts(
        settings.limits, log, gate, tls=tls, hosts=settings.hosts, warehouses=settings.warehouses
    )


def _serve_together(
    opened: Callable[[], Repository], settings: Settings, listeners: Listeners
) -> None:
    """Serves with `settings.workers` processes besides this one."""
    with opened() as repository:
        if repository.url == "memory:":
            raise InvalidInput("a store in memory exists in one process only. Hint: use one worker")
        # Unusable files are reported here, once, and not by each worker.
        _parts(settings, listeners._replace(log=None), repository)
    try:
        listener = listen(settings.host, settings.port)
    except OSError:
        raise cannot_listen(settings) from None
    url = url_of(listener.getsockname(), tls=settings.tls is not None)
    # Each worker gets its share of the connections and of the waiting writes.
    each = settings._replace(limits=settings.limits.shared_by(settings.workers))
    with (
        tempfile.TemporaryDirectory(prefix="nessie-serve-", ignore_cleanup_errors=True) as name,
        listener,
        _management_listener(settings) as management,
    ):
        folder = Path(name)
        config = configuration(
            Work(opened, each, listeners, folder, os.getpid(), management),
            factory=True,
            workers=settings.workers,
            ssl_context_factory=partial(_tls_context, settings.tls) if settings.tls else None,
            timeout_worker_healthcheck=HEALTHCHECK,
        )
        log = listeners.log and SharedLog(listeners.log, folder)
        Workers(config, listener, folder, started=lambda: listeners.started(url), log=log).run()


def _tls_context(tls: Tls, *_: Any) -> RenewedContext:
    return RenewedContext(tls)


class Work(Struct, frozen=True):
    """The work of a worker. uvicorn calls it in the worker's process, on the event loop."""

    opened: Callable[[], Repository]
    settings: Settings
    listeners: Listeners
    folder: Path
    parent: int
    management: socket.socket | None = None

    def __call__(self) -> Server:
        """Opens the repository and returns the application."""
        try:
            repository = self.opened()
        except NessieError as error:
            report_on_stderr(error.message)
            raise SystemExit(1) from None
        log = self.listeners.log and SharedLog(self.listeners.log, self.folder)
        parts = _parts(self.settings, self.listeners._replace(log=log), repository)
        server = _WorkerServer(repository, parts._replace(metrics=Metrics(self.folder)), self)
        collect_rarely()
        set_ready(self.folder)
        return server


class _WorkerServer(Server):
    """The application of a worker, which owns the repository and ends with its parent."""

    def __init__(self, repository: Repository, parts: Parts, work: Work) -> None:
        super().__init__(*_content(repository), parts)
        self.beside = pages(self)
        self._work = work
        self._managed = ExitStack()
        self._managed.enter_context(_managed(self, work.management))
        self._watch = asyncio.get_running_loop().create_task(self._end_with_parent())

    async def _end_with_parent(self) -> None:
        while os.getppid() == self._work.parent:  # noqa: ASYNC110 - nobody announces a kill
            await asyncio.sleep(1)
        signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """See the base class; if the parent has died, this removes its files."""
        self._managed.close()
        super().close()
        self._watch.cancel()
        self.catalog.repository.close()
        if os.getppid() != self._work.parent:
            shutil.rmtree(self._work.folder, ignore_errors=True)


class Uvicorn(uvicorn.Server):
    """uvicorn that reports when it listens, and only stops at a signal."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 - the interface of signal handlers
        """Stops when all requests are answered; at a second signal at once."""
        # The base class would raise the signal again at the end, which kills the process.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:
        """See the base class."""
        await super().startup(sockets)
        if self.started:
            self._on_listening(
                url_of(self.servers[0].sockets[0].getsockname(), tls=self.config.ssl is not None)
            )
