"""From the address of a server to a repository: the one for our own servers, or the one for all."""

from __future__ import annotations

from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.context import Context
from nessie_cli.repository.remote.extended import ExtendedRepository
from nessie_cli.repository.remote.repository import RemoteRepository
from nessie_cli.repository.remote.session import Session
from nessie_cli.repository.remote.transport import Transport


def open_remote(url: str, access: Access, context: Context, *, extensions: bool = True) -> Repository:
    """The repository behind a server, which is asked for its configuration. Without `extensions` our own servers are spoken to as any other."""
    transport = Transport(url, access, extensions=extensions)
    try:
        session = Session(transport)
    except BaseException:
        transport.close()
        raise
    return ExtendedRepository(session, context) if session.facts.extensions else RemoteRepository(session, context)
