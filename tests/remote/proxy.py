"""A proxy for tests: it tunnels (CONNECT), forwards requests for whole URLs, and may require
authentication."""

from __future__ import annotations

import base64
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.remote.listening import PATIENCE, Request, forward


class Proxy:
    """Records the targets of tunnels, and URLs."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.wanted: str | None = None
        self.url = ""

    def allows(self, header: str | None) -> bool:
        """Returns whether a client may use the proxy; with `wanted`, a name and password."""
        return (
            self.wanted is None
            or header == "Basic " + base64.b64encode(self.wanted.encode()).decode()
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_CONNECT(self) -> None:
        self.proxy.seen.append(f"CONNECT {self.path}")
        self.close_connection = True
        if not self._may_pass():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as there:
            self.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {self.connection: there, there: self.connection}
            while True:
                for end in select.select(list(ends), [], [], PATIENCE)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)

    def _forward(self) -> None:
        self.proxy.seen.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._may_pass():
            return
        parts = urlsplit(self.path)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {
            name.lower(): value
            for name, value in self.headers.items()
            if not name.lower().startswith("proxy-")
        }
        answer = forward(f"http://{parts.netloc}", Request(self.command, path, headers, body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        self.connection.sendall(
            f"HTTP/1.1 {answer.status} Something\r\n{lines}Content-Length: {len(answer.body)}\r\n\r\n".encode()
            + answer.body
        )

    do_GET = do_POST = do_PUT = do_DELETE = _forward  # noqa: N815 (the names of the base class)

    def _may_pass(self) -> bool:
        if self.proxy.allows(self.headers.get("Proxy-Authorization")):
            return True
        head = (
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic"
            " realm=proxy\r\nContent-Length: 0\r\n\r\n"
        )
        self.connection.sendall(head.encode())
        return False

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignores clients that disconnect."""


@contextmanager
def proxying() -> Iterator[Proxy]:
    """Yields a running proxy."""
    found = Proxy()

    class Handler(_Handler):
        proxy = found

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()
