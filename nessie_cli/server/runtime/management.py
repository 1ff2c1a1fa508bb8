"""The management port: health checks and metrics, apart from the port that clients fill.

It has an event loop of its own, so neither idle connections nor busy clients delay it.
"""

from __future__ import annotations

import socket
import threading

import uvicorn

from nessie_cli.server.app import Application

_CLOSES_WITHIN = 5.0
"""Seconds that running checks have when the server stops."""


class Management:
    """Answers with an application on a listening socket, until it is closed."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        config = uvicorn.Config(
            application,
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="management", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stops listening."""
        self._server.should_exit = True
        self._thread.join(_CLOSES_WITHIN)
