"""HTTP servers for tests, on free loopback ports: each answers by a function, or forwards
requests and changes them."""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.remote.tls import TLS

PATIENCE = 60


class Request(NamedTuple):
    """A received request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


class Answer(NamedTuple):
    """An answer. With `cut`, the connection is cut after this many bytes."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {"Content-Type": "application/json"}
    cut: int | None = None


CUT = Answer(cut=0)
"""No answer."""

Answering = Callable[[Request], Answer]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answering: Answering

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.answering(
            Request(
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        head = (
            f"HTTP/1.1 {answer.status} Something\r\n{lines}Content-Length:"
            f" {len(answer.body)}\r\n\r\n"
        )
        whole = head.encode() + answer.body
        self.connection.sendall(whole if answer.cut is None else whole[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True
            # A reset, not an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 (the names of the base class)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_: object) -> None:
        """Ignores clients that disconnect or do not use TLS: tests do so on purpose."""


@contextmanager
def listening(answering: Answering, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yields the URL of a running server."""

    class Handler(_Handler):
        pass

    Handler.answering = staticmethod(answering)  # type: ignore[assignment]
    server = _Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()


def forward(url: str, request: Request, without: tuple[str, ...] = ()) -> Answer:
    """Returns the answer of another server to a request, without the headers `without`."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in ("host", "connection", "accept-encoding", *without)
        }
        connection.request(request.method, request.path, request.body or None, headers)
        reply = connection.getresponse()
        body = reply.read()
        kept = {
            name: value
            for name, value in reply.getheaders()
            if name.lower() not in ("content-length", "connection", "transfer-encoding")
        }
        return Answer(reply.status, body, kept)
    finally:
        connection.close()


def server_tls(*, client_certificates: bool = False) -> ssl.SSLContext:
    """Returns TLS with the certificate of `tls`; `client_certificates` requires one of its CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(TLS / "ca.pem")
    return context
