"""Starting and stopping the server."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.repository.base import Repository
from nessie_cli.server.access_log import AccessLog
from nessie_cli.server.app import Parts, Server
from nessie_cli.server.call import Catalog
from nessie_cli.server.connections import GRACE, configuration
from nessie_cli.server.extensions import EXTENSIONS
from nessie_cli.server.gate import Security, open_gate
from nessie_cli.server.http import Limits
from nessie_cli.server.pages import pages
from nessie_cli.server.pieces import Pieces
from nessie_cli.server.routes import ROUTES
from nessie_cli.server.shared import Board, one_at_a_time
from nessie_cli.server.table import RouteTable
from nessie_cli.server.tls import RenewedContext, Tls
from nessie_cli.server.watched import tell_stderr
from nessie_cli.server.worker import Worker
from nessie_cli.server.workers import Team, listen


class Settings(NamedTuple):
    """Where the server listens, how much it takes from its clients, how many processes answer them, and who its clients are."""

    host: str = "127.0.0.1"
    port: int = 19120
    insecure: bool = False
    limits: Limits = Limits()
    workers: int = 1
    security: Security = Security()
    tls: Tls | None = None


class Listeners(NamedTuple):
    """What is told while the server runs: its URL once it listens, and the lines of its log, of every request or (`faults`) of failures only."""

    started: Callable[[str], None]
    log: Callable[[bytes], object] | None = None
    faults: bool = False


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only; of a name all addresses have to be."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        return host == "localhost"
    return bool(found) and all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def application(repository: Repository, parts: Parts | None = None) -> Server:
    """The ASGI application over a repository."""
    server = Server(Catalog(repository, repository.config().default_branch, Pieces()), RouteTable((*ROUTES, *EXTENSIONS)), parts)
    server.beside = pages(server)
    return server


def check_address(settings: Settings) -> None:
    """Raise `NotAllowed` for an address that others reach where everybody may do everything, unless the settings say that this is meant."""
    if settings.insecure or settings.security.keeps_strangers_out or is_loopback(settings.host):
        return
    raise NotAllowed(
        f"{settings.host} is reached by other machines, and nobody would be asked who they are; --tokens asks, --insecure says that this is meant"
    )


def cannot_listen(settings: Settings) -> StoreUnavailable:
    """The error for an address that cannot be listened on."""
    return StoreUnavailable(f"cannot listen on {settings.host}:{settings.port}; is the port taken, or the address not this machine's?")


def url_of(address: tuple[Any, ...], *, tls: bool) -> str:
    """The URL of a socket's address."""
    host, port = address[:2]
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def serve(opened: Callable[[], Repository], settings: Settings, listeners: Listeners) -> None:
    """Answer requests over a repository until the process is told to stop (SIGTERM, SIGINT); what was accepted is finished.

    `opened` opens the repository, once in each process. Raises `NotAllowed` for an address that others reach, unless the settings say that this is
    meant, `StoreUnavailable` for one that is taken, and `InvalidInput` for several processes over a store that lives in one.
    """
    check_address(settings)
    if settings.security.asks and settings.tls is None and not is_loopback(settings.host):
        tell_stderr(f"tokens for {settings.host} travel unencrypted; --tls-cert, or a proxy in front that speaks TLS, protects them")
    if settings.workers > 1:
        _serve_together(opened, settings, listeners)
        return
    with opened() as repository:
        app = application(repository, _parts(settings, listeners, repository))
        server = Uvicorn(configuration(app, host=settings.host, port=settings.port), listeners.started)
        # uvicorn leaves the process when it cannot listen.
        with suppress(SystemExit):
            server.run()
    if not server.started:
        raise cannot_listen(settings)


def _parts(settings: Settings, listeners: Listeners, repository: Repository) -> Parts:
    """What a server of this process is made of."""
    gate = open_gate(settings.security, repository)
    tls = RenewedContext(settings.tls) if settings.tls else None
    return Parts(settings.limits, AccessLog(listeners.log, faults=listeners.faults) if listeners.log else None, gate, tls=tls)


def _serve_together(opened: Callable[[], Repository], settings: Settings, listeners: Listeners) -> None:
    """Several processes: this one listens, `settings.workers` others answer."""
    with opened() as repository:
        if repository.url == "memory:":
            raise InvalidInput("a store in memory lives in one process; serve it with one worker")
        # What is wrong with the files is told here, once, and not by each worker.
        _parts(settings, listeners._replace(log=None), repository)
    try:
        listener = listen(settings.host, settings.port)
    except OSError:
        raise cannot_listen(settings) from None
    board, parent = Board(settings.workers), os.getpid()
    # Each worker takes its share of the connections and of the writes that may wait.
    each = settings.limits.shared_by(settings.workers)
    with tempfile.TemporaryDirectory(prefix="nessie-serve-", ignore_cleanup_errors=True) as folder, listener, closing(board):
        place = Path(folder)
        write = one_at_a_time(listeners.log, place) if listeners.log else None

        def work(slot: int, channel: socket.socket) -> None:
            mine = listeners._replace(log=one_at_a_time(listeners.log, place) if listeners.log else None)
            with opened() as repository:
                app = application(repository, _parts(settings._replace(limits=each), mine, repository))
                app.others = lambda: board.others(slot)
                Worker(app, channel, (board, slot)).run()
            if os.getppid() != parent:
                shutil.rmtree(place, ignore_errors=True)

        def lost(slot: int, line: bytes) -> None:
            board.end(slot)
            if write is not None and line:
                write(line)

        team = Team(listener, settings.workers, work)
        team.run(started=lambda: listeners.started(url_of(listener.getsockname(), tls=settings.tls is not None)), lost=lost, grace=GRACE)


class Uvicorn(uvicorn.Server):
    """Tells when it listens, and takes a signal as the wish to stop, no more."""

    def __init__(self, config: uvicorn.Config, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self._told = told

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 - the interface of signal handlers
        """Stop when all requests are answered; at the second signal without them."""
        # The base would remember the signal and raise it once more at the end, and the process would be killed instead of ending.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:
        """As the base."""
        await super().startup(sockets)
        if self.started:
            self._told(url_of(self.servers[0].sockets[0].getsockname(), tls=self.config.ssl is not None))
