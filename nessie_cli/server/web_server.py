"""The web server: uvicorn, by its public settings.

It bounds the number of connections and the time between two requests of one. `http.connections`
bounds what a client sends before it has its answers. Clients that send a head slowly or without end
are left to a proxy in front of the server.
"""

from __future__ import annotations

import uvicorn

from nessie_cli.server.http.connections import connections
from nessie_cli.server.pipeline.pipeline import Pipeline

GRACE = 20
"""Seconds that requests have to finish when the server is stopped.

Closing takes up to ten more seconds. Most supervisors kill a process after 30.
"""
_CLOSES_WITHIN = 1


def configuration(app: Pipeline) -> uvicorn.Config:
    """Returns the settings of uvicorn for a server, without its logs."""
    tls = app.tls
    return uvicorn.Config(
        app,
        http=connections(),
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # The pipeline refuses requests above the limit with an error body of their API.
        limit_concurrency=2 * app.limits.connections,
        timeout_keep_alive=app.limits.idle_seconds,
        timeout_graceful_shutdown=GRACE,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )


def management_configuration(app: Pipeline) -> uvicorn.Config:
    """Returns the settings of uvicorn for the management port, which uses plain HTTP."""
    return uvicorn.Config(
        app,
        http=connections(),
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CLOSES_WITHIN,
    )
