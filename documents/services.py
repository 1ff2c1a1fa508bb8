"""Services that a page uses, in place of those that it names: a database, a port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.postgres_server import shared_server

POSTGRES = "postgresql://nessie@db.example.org/lake"
PORT = "19120"


@contextmanager
def services(page: str) -> Iterator[dict[str, str]]:
    """What to replace on a page. A database is dropped before and after."""
    replacements = {PORT: _free_port()}
    if POSTGRES not in page:
        yield replacements
        return
    server = shared_server()
    _drop_schema()
    url = server.url("nessie").partition("?")[0]
    host = {"postgresql://db.example.org:5432": f"postgresql://127.0.0.1:{server.port}"}
    yield replacements | {POSTGRES: url} | host
    _drop_schema()


def _drop_schema() -> None:
    with shared_server().connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS nessie CASCADE")


def _free_port() -> str:
    """A port of five digits, so that pages and sessions are aligned alike."""
    while True:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = str(taken.getsockname()[1])
        if len(port) == len(PORT):
            return port
