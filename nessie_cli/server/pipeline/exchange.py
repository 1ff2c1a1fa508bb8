"""The facts about a request and its answer, and the access log that records them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue
from random import getrandbits
from time import perf_counter
from typing import Any

from msgspec import json

from nessie_cli.server.http.connections import ClientConnection, connection_of
from nessie_cli.server.http.messages import Headers, Receive, header
from nessie_cli.server.runtime.answer_memory import Share
from nessie_cli.server.runtime.metrics import Metrics

_OWN_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
UNKNOWN_ROUTE = "(none)"
_TOKEN = re.compile(rb"(nessie_[0-9a-f]{12}_|nessie-run_|eyJ)[A-Za-z0-9._-]{43,}")
"""A token of the token file, of a run or of an issuer, as clients put it into addresses."""


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
        "is_write",
        "method",
        "path",
        "principal",
        "received",
        "route",
        "scope",
        "session_ends",
        "share",
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
        self.is_write = False
        self.principal = ""
        self.session_ends: datetime | None = None
        """The end of the session of the browser, if the request has one."""
        self.share: Share | None = None
        """The memory that the answer holds, if it is large."""
        self.error = ""
        self.hides_query = False
        """Whether the log leaves the query out, because it holds a secret."""
        self.id = request_id(self.headers)
        self._connection: ClientConnection | None = connection_of(scope)
        if self._connection is not None:
            self._connection.begin(self.method, self.headers)

    def abort(self) -> None:
        """Ends the connection, whose client does not read its answer."""
        if self._connection is not None:
            self._connection.abort()

    def release(self) -> None:
        """Returns memory and lets the next request of the connection begin: the answer is sent."""
        if self.share is not None:
            self.share.release()
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
            "path": self.path[:_LONGEST],
            "query": (
                "" if self.hides_query else scope["query_string"][:_LONGEST].decode("latin-1")
            ),
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


_encode = json.Encoder().encode
_MOST_WAITING = 16 << 20
"""The most bytes of waiting lines. More lines are dropped, and their number is logged."""
_AT_ONCE = 1 << 20
"""The bytes of lines that are written at once."""
_LONGEST = 4_000
"""The longest path or query in a line."""


class AccessLog:
    """Writes records of requests as JSON lines; with `faults` only failures of the server.

    It has a thread of its own, so a slow reader of the log never delays a request.
    """

    def __init__(self, write: Callable[[bytes], object], *, faults: bool = False) -> None:
        self._write = write
        self._faults = faults
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        # Each number has one writer, the loop or the thread.
        self._queued = self._written = 0
        """The bytes of all lines so far."""
        self._lost = self._reported = 0
        """The number of all lines that were lost so far."""
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def wants(self, *, fault: bool) -> bool:
        """Returns whether a record would be written."""
        return fault or not self._faults

    def record(self, **fields: Any) -> None:
        """Logs a request or another event, with the time. A record with an `error` is a failure."""
        if not self.wants(fault="error" in fields):
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = _TOKEN.sub(rb"\1***", _encode({"time": time, **fields})) + b"\n"
        if self._queued - self._written + len(line) > _MOST_WAITING:
            self._lost += 1
            return
        self._queued += len(line)
        self._queue.put(line)

    def close(self) -> None:
        """Writes the waiting lines."""
        self._queue.put(None)
        self._thread.join(10)

    def _run(self) -> None:
        ended, failed, line_end = False, 0, b""
        while not ended:
            lines: list[bytes] = []
            size = 0
            while not ended and (not lines or (size < _AT_ONCE and not self._queue.empty())):
                line = self._queue.get()
                ended = line is None
                lines.append(line or b"")
                size += len(lines[-1])
            lost = self._lost - self._reported
            self._reported += lost
            if lost:
                text = f"{lost} lines of this log were lost: its reader is too slow"
                lines.append(_encode({"message": text}) + b"\n")
            count = len(lines)
            if failed:
                text = f"lines of this log were lost, at most {failed}: they could not be written"
                lines.append(_encode({"message": text}) + b"\n")
            try:
                self._write(line_end + b"".join(lines))
                failed, line_end = 0, b""
            except BrokenPipeError:
                # The reader of the log has exited; requests continue.
                ended = True
            except OSError:
                # The disk is full, for example. The last line may be cut off.
                failed, line_end = failed + count, b"\n"
            self._written += size
