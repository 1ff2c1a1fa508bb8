"""The facts about a request and its answer for the log and the metrics."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from random import getrandbits
from time import perf_counter
from typing import Any

from nessie_cli.server.http.connections import Connection, connection_of
from nessie_cli.server.http.messages import Headers, Receive, header
from nessie_cli.server.runtime.access_log import AccessLog
from nessie_cli.server.runtime.metrics import Metrics

_OWN_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
UNKNOWN_ROUTE = "(none)"


class Exchange:
    """A request, from its first line to the last byte of its answer."""

    __slots__ = (
        "_connection",
        "_receive",
        "_watch",
        "begun",
        "error",
        "headers",
        "hides_query",
        "id",
        "method",
        "path",
        "principal",
        "received",
        "route",
        "scope",
    )

    def __init__(self, scope: Any, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None
        self.headers: Headers = scope["headers"]
        self.begun = perf_counter()
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.route = UNKNOWN_ROUTE
        self.received = 0
        self.principal = ""
        self.error = ""
        self.hides_query = False
        """Whether the log leaves the query out, because it holds a secret."""
        self.id = request_id(self.headers)
        self._connection: Connection | None = connection_of(scope)
        if self._connection is not None:
            self._connection.begin(self.method, self.headers)

    def release(self) -> None:
        """Lets the next request of the connection begin: this one has been answered."""
        if self._connection is not None:
            self._connection.release()

    @property
    def lost(self) -> Callable[[], bool]:
        """A function that returns whether the client has closed the connection.

        The body of the request must have been read.
        """
        if self._watch is None:
            self._watch = asyncio.create_task(self._await_disconnect())
        return self._watch.done

    async def _await_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def done(self, status: int, sent: int, metrics: Metrics, log: AccessLog | None) -> None:
        """Counts and logs the request."""
        if self._watch is not None:
            self._watch.cancel()
        seconds = perf_counter() - self.begun
        metrics.observe(self.method, self.route, status, seconds, received=self.received, sent=sent)
        if log is not None and log.wants(fault=bool(self.error)):
            log.record(**self._record(status, sent, seconds))

    def _record(self, status: int, sent: int, seconds: float) -> dict[str, Any]:
        scope, client = self.scope, self.scope.get("client")
        record = {
            "requestId": self.id,
            "client": client[0] if client else "",
            "principal": self.principal,
            "method": self.method,
            "path": self.path,
            "query": "" if self.hides_query else scope["query_string"].decode("latin-1"),
            "route": self.route,
            "status": status,
            "milliseconds": round(seconds * 1000, 3),
            "received": self.received,
            "sent": sent,
            "userAgent": header(self.headers, b"user-agent").decode("latin-1")[:200],
        }
        return record | {"error": self.error} if self.error else record


def request_id(headers: Headers) -> str:
    """Returns the client's id of the request if it is valid, otherwise a new one."""
    given = header(headers, b"x-request-id")
    if given and _OWN_ID.fullmatch(given):
        return given.decode()
    return f"{getrandbits(64):016x}"
