"""Servers whose answers are slow."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
Send = Callable[[socket.socket], None]


@contextmanager
def answering(send: Send) -> Iterator[str]:
    """A server whose answers are what `send` sends. Yields a URL."""
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(10_000)
            send(connection)

    def accept() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys"
        finally:
            ended.set()
            thread.join()


def drop_by_drop(start: bytes, drop: bytes) -> Send:
    def send(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range(600):
            connection.sendall(drop)
            time.sleep(0.05)

    return send


SLOW: dict[str, Send] = {
    "nothing": drop_by_drop(b"", b""),
    "body": drop_by_drop(HEAD, b" "),
    "status": drop_by_drop(b"HTTP/1.1 ", b"2"),
    "headers": drop_by_drop(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
}
