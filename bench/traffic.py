"""Sends requests to a server, from many clients at once, and times the answers.

One thread: it has to be cheaper than the measured server.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

OK = 200
PATIENCE = 60.0
"""Seconds without an answer until `drive` gives up."""


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    body: bytes


class Request(NamedTuple):
    """A request, and whether its time counts (not if it only prepares another one).

    One with `again` retries the request before it: both count once, and the time begins with the
    first one.
    """

    data: bytes
    counts: bool = True
    again: bool = False


Script = Generator[Request, Answer, None]
"""The script of one client: yields requests and receives their answers."""


class Server:
    """A server by its URL; builds requests for its API v2 and sends single ones."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.address = (str(parts.hostname), int(parts.port or 80))
        self._head = f"host: {parts.hostname}\r\naccept: application/json\r\n"

    def get(self, path: str) -> bytes:
        """Returns a GET below `/api/v2`."""
        return f"GET /api/v2{path} HTTP/1.1\r\n{self._head}\r\n".encode()

    def post(self, path: str, body: Any, *, method: str = "POST", api: str = "/api/v2") -> bytes:
        """Returns a request with a JSON body (bytes are sent unchanged)."""
        data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        return (
            f"{method} {api}{path} HTTP/1.1\r\n{self._head}content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode()
            + data
        )

    def ask(self, *requests: bytes) -> list[Answer]:
        """Returns the answers to requests, sent in turn. Raises an error for a refusal."""
        answers: list[Answer] = []

        def script() -> Script:
            for request in requests:
                answer = yield Request(request, counts=False)
                answers.append(answer)

        drive(self, [script()])
        for answer in answers:
            if answer.status != OK:
                raise RuntimeError(f"{answer.status} {answer.body[:300]!r}")
        return answers

    def head(self, branch: str) -> str:
        """Returns the hash of a branch."""
        hash_: str = json.loads(self.ask(self.get(f"/trees/{quote(branch)}"))[0].body)["reference"][
            "hash"
        ]
        return hash_


class _Client:
    """A connection and its script."""

    def __init__(self, server: Server, script: Script) -> None:
        self.socket = socket.create_connection(server.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.script = script
        self._read = bytearray()
        self.times: list[float] = []
        self._sent_at = 0.0
        self._counts = self._counted = False

    def begin(self, request: Request) -> None:
        self._read.clear()
        if not request.again:
            self._sent_at = time.perf_counter()
        elif self._counted:
            self.times.pop()
        self._counts, self._counted = request.counts, False
        self.socket.sendall(request.data)

    def receive(self) -> Answer | None:
        """Reads the received bytes; returns the answer if it is complete."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server has hung up")
        self._read += data
        answer = _parsed(self._read)
        if answer is not None and self._counts:
            self.times.append(time.perf_counter() - self._sent_at)
            self._counted = True
        return answer


def _parsed(data: bytearray) -> Answer | None:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(data[:end]).lower()
    status = int(head[9:12])
    at = head.find(b"content-length:")
    if at >= 0:
        size = int(head[at + 15 :].split(b"\r\n", 1)[0])
        return (
            Answer(status, bytes(data[end + 4 : end + 4 + size]))
            if len(data) >= end + 4 + size
            else None
        )
    if b"transfer-encoding: chunked" in head:
        return (
            Answer(status, b"".join(_chunks(data, end + 4)))
            if data.endswith(b"0\r\n\r\n")
            else None
        )
    return Answer(status, b"")


def _chunks(data: bytearray, at: int) -> Iterator[bytes]:
    while size := int(data[at : data.index(b"\r\n", at)], 16):
        begin = data.index(b"\r\n", at) + 2
        yield bytes(data[begin : begin + size])
        at = begin + size + 2


def drive(server: Server, scripts: Sequence[Script]) -> list[float]:
    """Runs all scripts at once, each over its own connection, to their ends.

    Returns the seconds of every request that counts. Raises `TimeoutError` if no answer comes for
    `PATIENCE` seconds.
    """
    clients = [_Client(server, script) for script in scripts]
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        for client in clients:
            stack.enter_context(client.socket)
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.begin(next(client.script))
        while selector.get_map():
            ready = selector.select(PATIENCE)
            if not ready:
                raise TimeoutError(f"no answer for {PATIENCE:g} seconds")
            for key, _ in ready:
                client = key.data
                answer = client.receive()
                if answer is None:
                    continue
                try:
                    client.begin(client.script.send(answer))
                except StopIteration:
                    selector.unregister(client.socket)
                    client.socket.close()
    return [seconds for client in clients for seconds in client.times]
