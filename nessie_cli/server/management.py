"""The management port: health checks and metrics, apart from the port that clients fill.

It has an event loop of its own, so neither idle connections nor busy clients delay it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from nessie_cli.server.pipeline.pipeline import Pipeline
from nessie_cli.server.web_server import management_configuration

_CLOSES_WITHIN = 5.0
"""Seconds that running checks have when the server stops."""


@contextmanager
def managed(application: Pipeline, listeners: list[socket.socket]) -> Iterator[None]:
    """Answers with an application on listening sockets within the block, if there are any."""
    if not listeners:
        yield
        return
    server = uvicorn.Server(management_configuration(application))
    thread = threading.Thread(target=server.run, args=(listeners,), name="management", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_CLOSES_WITHIN)
