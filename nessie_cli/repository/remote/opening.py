"""From the address of a server to a repository."""

from __future__ import annotations

from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.context import Context
from nessie_cli.repository.remote.repository import RemoteRepository
from nessie_cli.repository.remote.session import Session
from nessie_cli.repository.remote.transport import Transport


def open_remote(
    url: str, access: Access, context: Context, *, extensions: bool = True
) -> Repository:
    """The repository behind a server.

    Without `extensions`, plain REST v2 is spoken to our servers too.
    """
    transport = Transport(url, access, extensions=extensions)
    try:
        return RemoteRepository(Session(transport, context))
    except BaseException:
        transport.close()
        raise
