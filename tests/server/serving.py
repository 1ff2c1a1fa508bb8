"""A real server on a free loopback port, on a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from nessie_cli import connect
from nessie_cli.repository.base import Repository
from nessie_cli.server.running import application
from nessie_cli.server.web_server import configuration

PATIENCE = 120


@contextmanager
def serving(
    repository: Repository | None = None,
    app: Any = None,
    app_at: Callable[[str], Any] | None = None,
) -> Iterator[str]:
    """Yields the URL of a server over a repository; creates one in memory if none is given.

    `app_at` returns the application for a URL.
    """
    with socket.socket() as listener, connect("memory:") as fresh:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = app_at(url) if app_at else app or application(repository or fresh)
        server = uvicorn.Server(configuration(app))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(0.005)
        assert server.started
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()
