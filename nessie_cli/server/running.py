"""Starting and stopping the server."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

import uvicorn

from nessie_cli.errors import NessieError, NotAllowed
from nessie_cli.repository.base import Repository
from nessie_cli.server.app import Api, Receive, Scope, Send
from nessie_cli.server.call import Catalog
from nessie_cli.server.routes import ROUTES
from nessie_cli.server.table import RouteTable

_GRACE = 30
"""Seconds that requests have to finish when the server is told to stop."""


class Settings(NamedTuple):
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 19120
    insecure: bool = False


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def application(repository: Repository) -> Any:
    """The ASGI application over a repository."""
    api = Api(Catalog(repository, repository.config().default_branch), RouteTable(ROUTES))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(api, receive, send)
        else:
            await api(scope, receive, send)

    return app


async def _lifespan(api: Api, receive: Receive, send: Send) -> None:
    while True:
        message: MutableMapping[str, Any] = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            api.close()
            return


def serve(repository: Repository, settings: Settings, started: Callable[[str], None]) -> None:
    """Answer requests over a repository until the process is told to stop; `started` is called with the URL once it listens.

    Raises `NotAllowed` for an address that others reach, unless the settings say that this is meant, and `NessieError` where it is taken.
    """
    if not settings.insecure and not is_loopback(settings.host):
        raise NotAllowed(f"{settings.host} is reached by other machines, and nobody would be asked who they are; --insecure says that this is meant")
    config = uvicorn.Config(
        application(repository),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config, started)
    try:
        server.run()
    except SystemExit:
        raise NessieError(f"cannot listen on {settings.host}:{settings.port}: is the port taken?") from None


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._told(f"http://{f'[{host}]' if ':' in host else host}:{port}")
