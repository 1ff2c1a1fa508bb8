"""Opens a repository behind a server."""

from __future__ import annotations

from collections.abc import Callable

from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.remote.repository import RemoteRepository
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import Transport


def open_remote(
    url: str, access: Access, random: Callable[[int], bytes], *, extensions: bool = True
) -> Repository:
    """Opens the repository behind a server.

    `random` returns random bytes. Without `extensions`, sends plain REST v2 to `nessie serve`, too.
    """
    transport = Transport(url, access, extensions=extensions)
    try:
        return RemoteRepository(_server(RestSession(transport, random)))
    except BaseException:
        transport.close()
        raise


def _server(session: RestSession) -> Server:
    # A command loads only what its server needs.
    if session.configuration.extensions:
        from nessie_cli.repository.remote.extended.server import ExtendedServer

        return ExtendedServer(session)
    from nessie_cli.repository.remote.plain.server import PlainServer

    return PlainServer(session)
