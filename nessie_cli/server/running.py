"""Starting and stopping the server."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import uvicorn

from nessie_cli.errors import NotAllowed, StoreUnavailable
from nessie_cli.repository.base import Repository
from nessie_cli.server.access_log import AccessLog
from nessie_cli.server.app import Parts, Server
from nessie_cli.server.call import Catalog
from nessie_cli.server.connections import protocol
from nessie_cli.server.extensions import EXTENSIONS
from nessie_cli.server.http import Limits
from nessie_cli.server.pages import pages
from nessie_cli.server.routes import ROUTES
from nessie_cli.server.table import RouteTable

GRACE = 30
"""Seconds that requests have to finish when the server is told to stop."""


class Settings(NamedTuple):
    """Where the server listens, and how much it takes from its clients."""

    host: str = "127.0.0.1"
    port: int = 19120
    insecure: bool = False
    limits: Limits = Limits()


class Listeners(NamedTuple):
    """What is told while the server runs: its URL once it listens, and the lines of its log, of every request or (`faults`) of failures only."""

    started: Callable[[str], None]
    log: Callable[[bytes], object] | None = None
    faults: bool = False


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def application(repository: Repository, parts: Parts | None = None) -> Server:
    """The ASGI application over a repository."""
    server = Server(Catalog(repository, repository.config().default_branch), RouteTable((*ROUTES, *EXTENSIONS)), parts)
    server.beside = pages(server)
    return server


def configuration(app: Server, *, ended: Callable[[], object] | None = None, **named: Any) -> uvicorn.Config:
    """How uvicorn runs an application: with our connections, and without logs of its own. `ended` is called when a client has gone."""
    return uvicorn.Config(
        app,
        http=protocol(app.limits, ended),
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        **named,
    )


def check_address(settings: Settings) -> None:
    """Raise `NotAllowed` for an address that others reach, unless the settings say that this is meant."""
    if not settings.insecure and not is_loopback(settings.host):
        raise NotAllowed(f"{settings.host} is reached by other machines, and nobody would be asked who they are; --insecure says that this is meant")


def cannot_listen(settings: Settings) -> StoreUnavailable:
    """The error for an address that cannot be listened on."""
    return StoreUnavailable(f"cannot listen on {settings.host}:{settings.port}; is the port taken, or the address not this machine's?")


def url_of(address: tuple[Any, ...]) -> str:
    """The URL of a socket's address."""
    host, port = address[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(repository: Repository, settings: Settings, listeners: Listeners) -> None:
    """Answer requests over a repository until the process is told to stop (SIGTERM, SIGINT); what was accepted is finished.

    Raises `NotAllowed` for an address that others reach, unless the settings say that this is meant, and `StoreUnavailable` for one that is taken.
    """
    check_address(settings)
    log = AccessLog(listeners.log, faults=listeners.faults) if listeners.log else None
    app = application(repository, Parts(settings.limits, log))
    server = Uvicorn(configuration(app, host=settings.host, port=settings.port), listeners.started)
    # uvicorn leaves the process when it cannot listen.
    with suppress(SystemExit):
        server.run()
    if not server.started:
        raise cannot_listen(settings)


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
            self._told(url_of(self.servers[0].sockets[0].getsockname()))
