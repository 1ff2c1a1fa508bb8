"""Connections: limits that uvicorn's protocol lacks, and errors in Nessie's form.

They concern heads without end, clients that do not read, and too many connections. A head is the
first line of a request and its headers. Bodies are limited in `http.read_body`.

A client that is disconnected while it sends may never see the reason, because its system discards
the answer. So if a request is refused before its end, the server closes its own side, reads and
discards for a limited time, and disconnects when the client has done so or falls silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Any
from weakref import ref

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from nessie_cli.server.app import Pipeline
from nessie_cli.server.http import ARRIVED, AT_ONCE, DRAIN_SECONDS, LOST, SILENCE, Limits
from nessie_cli.server.runtime.replies import TOO_MANY, refusal, refusing, send_at_once
from nessie_cli.server.runtime.workers import GRACE

PROBE_EVERY = 0.5
"""Seconds between checks whether a silent waiting client is still connected."""
PARSED_AT_ONCE = 4096
"""Bytes that a connection parses before others have their turn."""
_CONTINUE = 100
_TOO_LARGE = 431
_TOO_SLOW = 408
_MALFORMED = 400


def configuration(app: Pipeline) -> uvicorn.Config:
    """Returns the configuration of uvicorn, with our connections and without its logs."""
    tls = app.tls
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )


class _Flow(FlowControl):
    """See the base class; does not read more while requests or bytes wait."""

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self._waiting = waiting
        self._bytes_wait = False

    def pause_reading(self) -> None:
        """See the base class."""
        self.read_paused = True
        self._apply()

    def resume_reading(self) -> None:
        """See the base class."""
        if not self._waiting:
            self.read_paused = False
            self._apply()

    def set_bytes_wait(self, bytes_wait: bool) -> None:
        """Says whether received bytes are not parsed."""
        self._bytes_wait = bytes_wait
        self._apply()

    def _apply(self) -> None:
        if self._transport.is_closing():
            return
        if self.read_paused or self._bytes_wait:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class Connection(HttpToolsProtocol):
    """A client of a `Pipeline`, within its limits."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.limits: Limits = self.app.limits
        self.timeout_keep_alive = self.limits.idle_seconds
        self._answers = self.app
        self._unparsed = memoryview(b"")
        self._chunk = 0
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._refusal: tuple[int, str] | None = None
        self._drain_until, self._drained = 0.0, 0
        self._half_closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See the base class; refuses connections above twice the limit without an answer."""
        super().connection_made(transport)
        self._answers.metrics.connected(self)
        self.flow = self._flow = _Flow(transport, self.pipeline)
        if len(self.connections) > 2 * self.limits.connections:
            transport.abort()
        else:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._late)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends nothing more, but still gets the answers to its complete requests.

        The connection ends after them, as HTTP allows.
        """
        newest = self.cycle
        if newest is None or newest.response_complete or self.scheme == "https":
            return False
        if newest.more_body:
            # This request will never be complete; earlier ones in the pipeline are.
            if not self.pipeline:
                return False
            self.pipeline.popleft()
        self._stop_timer()
        self._half_closed = True
        self._timer = self.loop.call_later(PROBE_EVERY, self._probe)
        return True

    def _probe(self) -> None:
        """Checks whether a silent client is connected, by a 1xx answer, which means nothing."""
        cycle = self.cycle
        if (
            not self.pipeline
            and not cycle.response_started
            and cycle.scope["method"] == "GET"
            and cycle.scope["http_version"] == "1.1"
        ):
            self.transport.write(STATUS_LINE[_CONTINUE] + b"\r\n")
        self._timer = self.loop.call_later(PROBE_EVERY, self._probe)

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base class."""
        self._answers.metrics.disconnected(self)
        self._stop_timer()
        self._flows()
        self._unparsed = memoryview(b"")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See the base class; many bytes are parsed in turn with those of others."""
        self._unset_keepalive_if_required()
        if not self._unparsed and len(data) <= PARSED_AT_ONCE:
            self._parse(data)
            return
        if not self._unparsed:
            self._answers.turns.add(self)
        self._unparsed = memoryview(bytes(self._unparsed) + data)
        self._flow.set_bytes_wait(True)

    def parse_more(self) -> bool:
        """Parses a few of the received bytes. Returns whether there are more."""
        part, self._unparsed = self._unparsed[:PARSED_AT_ONCE], self._unparsed[PARSED_AT_ONCE:]
        if part and not self.transport.is_closing():
            self._parse(bytes(part))
        if not self._unparsed:
            self._flow.set_bytes_wait(False)
        return bool(self._unparsed)

    def _parse(self, data: bytes) -> None:
        """Parses received bytes; limits heads without end."""
        self._chunk = len(data)
        if self._refusal is not None:
            self._drain()
            return
        self._head_bytes += self._chunk
        self._feed(data)
        if self._refusal is None and not self.transport.is_closing():
            if self._head_bytes > self.limits.head:
                self._refuse(
                    _TOO_LARGE,
                    (
                        f"the request's first line and headers are larger than {self.limits.head}"
                        " bytes"
                    ),
                )
            elif self._in_head and self._timer is None:
                self._timer = self.loop.call_later(self.limits.head_seconds, self._late)

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:
                data = self._without_upgrade() + data[wish.args[0] :]
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                return
            else:
                return

    def _without_upgrade(self) -> bytes:
        """Returns the head without the request for another protocol, which is not available here.

        The parser would treat the body of the request as the next request.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        self.parser = _parser(self)
        if method == b"CONNECT":
            return b""
        lines = [
            b"%s %s HTTP/%s" % (method, self.url, version),
            *(b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"),
        ]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """See the base class."""
        super().on_message_begin()
        # Bytes that came with the end of the last request are not all of this one.
        self._in_head, self._head_bytes = True, self._chunk

    def on_headers_complete(self) -> None:
        """See the base class; another application answers a refused request."""
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            return
        self._stop_timer()
        self._in_head = False
        # The head is part of what has arrived, which is rarely larger than the limit.
        arrived, self._head_bytes = self._head_bytes, 0
        if arrived > self.limits.head and self._head() > self.limits.head:
            self.app = refusing(
                _TOO_LARGE,
                f"the request's first line and headers are larger than {self.limits.head} bytes",
                self.limits,
            )
        elif len(self.connections) > self.limits.connections:
            self.app = refusing(TOO_MANY, "Too many clients are connected", self.limits)
        super().on_headers_complete()
        self.app = self._answers
        state = self.scope["state"]
        state[AT_ONCE] = partial(send_at_once, ref(self.cycle))
        state[LOST] = self.transport.is_closing
        # Trailers are not headers of the request.
        self.headers = []

    def _head(self) -> int:
        """Returns the size of the head."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        """See the base class."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """See the base class; tells the application that the body is complete."""
        if self._in_head:
            return
        self._chunk = self._head_bytes = 0
        self.scope["state"][ARRIVED] = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """See the base class; refuses what follows the last valid request when its turn comes."""
        is_last = not self.pipeline
        super().on_response_complete()
        self._answer_refusal()
        if self._half_closed and is_last:
            self.transport.close()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._give_up_later()

    def timeout_keep_alive_handler(self) -> None:
        """See the base class; drops a client that has not read its last answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answers in Nessie's form to bytes that are not HTTP."""
        self._refuse(_MALFORMED, msg)

    def pause_writing(self) -> None:
        """See the base class; disconnects a client that does not read for a while."""
        super().pause_writing()
        self._give_up_later()

    def resume_writing(self) -> None:
        """See the base class."""
        self._flows()
        super().resume_writing()

    def _give_up_later(self) -> None:
        self._flows()
        self._stalled = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def _flows(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        # This process may have been busy: received bytes are read before the next timer.
        self._timer = self.loop.call_later(0, self._too_late)

    def _too_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._unparsed:
            self._late()
            return
        # No byte has arrived since the last request.
        if self.headers is not None:
            self._refuse(
                _TOO_SLOW,
                f"the request's headers did not arrive within {self.limits.head_seconds:g} seconds",
            )
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Refuses outside of any request, after the pending answers, and disconnects."""
        self._stop_timer()
        self._refusal = status, message
        cycle = self.cycle
        if (
            cycle is not None
            and not cycle.response_complete
            and cycle.more_body
            and not cycle.response_started
            and not self.pipeline
        ):
            # The body of this request is invalid.
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()
            self._send_refusal(status, message)
        else:
            self._answer_refusal()

    def _answer_refusal(self) -> None:
        if self._refusal is None or self._drain_until or self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self._send_refusal(*self._refusal)

    def _send_refusal(self, status: int, message: str) -> None:
        headers, body = refusal(status, message)
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[status], lines, body))
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._drain_until = self.loop.time() + DRAIN_SECONDS
        self._chunk = 0
        self._drain()

    def _drain(self) -> None:
        """Discards what a refused client sends, and disconnects after a while."""
        if not self._drain_until:
            return
        self._stop_timer()
        self._drained += self._chunk
        if self._drained > self.limits.most_drained or self.loop.time() > self._drain_until:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(SILENCE, self.transport.close)


def _parser(connection: Connection) -> Any:
    """Returns a parser as the base class has one."""
    parser = httptools.HttpRequestParser(connection)
    # A client that sends "close" and another request gets only the answer to the first.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
