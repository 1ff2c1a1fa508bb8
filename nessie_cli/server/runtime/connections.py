"""Connections: what uvicorn's protocol leaves open. Heads without end, clients that do not read, too many of them, and errors in Nessie's form.

A head is a request's first line and its headers. What an application can limit (bodies) is limited there (`http.read_body`).

A client that is hung up on while it sends may never see why: its system throws the answer away when it hears that nobody listens. So whoever is
refused in the middle of a request is heard out, within limits: the server ends its own side, reads on into nothing, and hangs up when the client has
done so or has fallen silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from weakref import ref

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from nessie_cli.server.app import Server
from nessie_cli.server.http import ARRIVED, AT_ONCE, HEARD_FOR, LOST, SILENCE, Limits
from nessie_cli.server.runtime.replies import TOO_MANY, refusal, refusing, send_at_once

GRACE = 30
"""Seconds that requests have to finish when the server is told to stop."""
PROBE_EVERY = 0.5
"""Seconds between two looks at a client that waits for an answer and sends nothing more: it may have hung up."""
_CONTINUE = 100
_TOO_LARGE = 431
_TOO_SLOW = 408
_MALFORMED = 400


def configuration(app: Server | Callable[[], Server], **named: Any) -> uvicorn.Config:
    """How uvicorn runs an application: with our connections, and without logs of its own.

    With `factory=True` the application is made in the process that runs it.
    """
    if isinstance(app, Server) and app.tls is not None:
        named["ssl_context_factory"] = lambda *_: app.tls
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
        **named,
    )


class _Flow(FlowControl):
    """As the base; while requests wait for the answers before theirs, no more of them are read."""

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """As the base."""
        if not self._waiting:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """One client of a `Server`, within its limits."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.limits: Limits = self.app.limits
        self.timeout_keep_alive = self.limits.idle_seconds
        self._answers = self.app
        self._chunk = 0
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._refusal: tuple[int, str] | None = None
        self._heard_until, self._heard = 0.0, 0
        self._half_closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As the base; beyond twice the number of connections nobody is even answered."""
        super().connection_made(transport)
        self._answers.metrics.connected(self)
        self.flow = _Flow(transport, self.pipeline)
        if len(self.connections) > 2 * self.limits.connections:
            transport.abort()
        else:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._late)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends nothing more. It still gets the answers to its whole requests, as HTTP allows; the connection ends behind them."""
        newest = self.cycle
        if newest is None or newest.response_complete or self.scheme == "https":
            return False
        if newest.more_body:
            # This request will never be whole; those before it in the pipeline are.
            if not self.pipeline:
                return False
            self.pipeline.popleft()
        self._stop_timer()
        self._half_closed = True
        self._timer = self.loop.call_later(PROBE_EVERY, self._probe)
        return True

    def _probe(self) -> None:
        """Find out whether a client that sends nothing more is still there, which only a byte to it can tell: a 1xx answer, which means nothing."""
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
        """As the base."""
        self._answers.metrics.disconnected(self)
        self._stop_timer()
        self._flows()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As the base, with an eye on heads that do not end."""
        self._chunk = len(data)
        if self._refusal is not None:
            self._hear()
            return
        self._head_bytes += self._chunk
        self._unset_keepalive_if_required()
        self._feed(data)
        if self._refusal is None and not self.transport.is_closing():
            if self._head_bytes > self.limits.head:
                self._refuse(
                    _TOO_LARGE,
                    f"the request's first line and headers are larger than {self.limits.head} bytes",
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
        """The head once more, as if its client had not asked for another protocol: here it gets none, and its request is one like every other.

        The parser has given up the request's body, and would take it for the next request.
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
        """As the base."""
        super().on_message_begin()
        # What came with the end of the request before is not all of this one's.
        self._in_head, self._head_bytes = True, self._chunk

    def on_headers_complete(self) -> None:
        """As the base; a request that is not taken is answered by another application."""
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            return
        self._stop_timer()
        self._in_head = False
        self._head_bytes = 0
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head > self.limits.head:
            self.app = refusing(
                _TOO_LARGE,
                f"the request's first line and headers are larger than {self.limits.head} bytes",
                self.limits,
            )
        elif len(self.connections) > self.limits.connections:
            self.app = refusing(TOO_MANY, "Too many clients are connected", self.limits)
        super().on_headers_complete()
        self.app = self._answers
        self.scope["state"] |= {
            AT_ONCE: partial(send_at_once, ref(self.cycle)),
            LOST: self.transport.is_closing,
        }
        # What comes behind a body is no header of the request, and nobody asks for it.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        """As the base."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """As the base; the application is told that it need not wait for this body."""
        if self._in_head:
            return
        self._chunk = self._head_bytes = 0
        self.scope["state"][ARRIVED] = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """As the base; what came behind the last request that could be read is refused when its turn comes."""
        is_last = not self.pipeline
        super().on_response_complete()
        self._answer_refusal()
        if self._half_closed and is_last:
            self.transport.close()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._give_up_later()

    def timeout_keep_alive_handler(self) -> None:
        """As the base; for a client that has not even read the last answer nothing is kept."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no HTTP, in Nessie's form."""
        self._refuse(_MALFORMED, msg)

    def pause_writing(self) -> None:
        """As the base; a client that does not read is given up after a while."""
        super().pause_writing()
        self._give_up_later()

    def resume_writing(self) -> None:
        """As the base."""
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
        # Perhaps the head is there, and it is this process that was held up: what has come is read before the next timer.
        self._timer = self.loop.call_later(0, self._too_late)

    def _too_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        # Nothing at all has come where no request has begun.
        if self.headers is not None:
            self._refuse(
                _TOO_SLOW,
                f"the request's headers did not arrive within {self.limits.head_seconds:g} seconds",
            )
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer outside of any request, behind the answers that are under way, and hang up. Nothing more is taken from the client."""
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
            # It is this request's body that cannot be read.
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()
            self._send_refusal(status, message)
        else:
            self._answer_refusal()

    def _answer_refusal(self) -> None:
        if self._refusal is None or self._heard_until or self.transport.is_closing():
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
        self._heard_until = self.loop.time() + HEARD_FOR
        self._chunk = 0
        self._hear()

    def _hear(self) -> None:
        """Leave what a refused client sends unread, and hang up when it has been heard out."""
        if not self._heard_until:
            return
        self._stop_timer()
        self._heard += self._chunk
        if self._heard > self.limits.heard or self.loop.time() > self._heard_until:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(SILENCE, self.transport.close)


def _parser(connection: Connection) -> Any:
    """A parser as the base has one."""
    parser = httptools.HttpRequestParser(connection)
    # Whoever says "close" and sends another request all the same gets the answer to the first.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
