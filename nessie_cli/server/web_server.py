"""The web server: uvicorn, by its public settings.

`http.connections` bounds the number of connections, what a client sends before it has its answers,
and the time of a head. The pipeline bounds the number of requests.

The management port answers health checks and metrics, apart from the port that clients fill. It has
an event loop of its own, so neither idle connections nor busy clients delay it.
"""

from __future__ import annotations

import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from nessie_cli.server.http.connections import connections
from nessie_cli.server.pipeline.pipeline import Pipeline

GRACE = 20
"""Seconds that requests have to finish when the server is stopped.

Closing takes up to ten more seconds. Most supervisors kill a process after 30.
"""
_CLOSES_WITHIN = 1
_MOST_CHECKS = 100
"""The most connections of the management port."""


def configuration(app: Pipeline) -> uvicorn.Config:
    """Returns the settings of uvicorn for a server, without its logs."""
    tls = app.tls
    return _configuration(
        app,
        2 * app.limits.connections,
        lifespan="on",
        timeout_keep_alive=app.limits.idle_seconds,
        timeout_graceful_shutdown=GRACE,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )


def management_configuration(app: Pipeline) -> uvicorn.Config:
    """Returns the settings of uvicorn for the management port, which uses plain HTTP."""
    return _configuration(
        app, _MOST_CHECKS, lifespan="off", timeout_graceful_shutdown=_CLOSES_WITHIN
    )


def _configuration(app: Pipeline, most_connections: int, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connections(most_connections, app.limits.idle_seconds),
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        **more,
    )


_MOST_FILES = 16_384
"""The open files that a server asks the system for, connections included."""


def raise_file_limit() -> None:
    """Lets the process open more files than the usual 1,024, if the system allows it.

    Otherwise idle connections could use up all of them, also those of the management port.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _MOST_FILES:
        return
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


_TURN = 0.001
"""Seconds for which a thread computes while others wait; Python's default is 0.005."""


def take_short_turns() -> None:
    """Lets threads take turns often, so that short requests are answered beside large merges.

    The event loop waits for every thread that computes, at each of its steps.
    """
    sys.setswitchinterval(_TURN)


_CHECKS_END_WITHIN = 5.0
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
        thread.join(_CHECKS_END_WITHIN)
