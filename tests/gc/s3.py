"""S3 by moto's server program on a loopback port. Requests can be refused or held back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

KEY, SECRET = "AKIA-of-a-test", "never-to-be-seen"
REFUSED = (
    b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
)


class Store:
    """A server and its contents.

    `refused` has (method, end of the path) of forbidden requests, `held` those of requests that
    wait for `go`.
    """

    def __init__(self) -> None:
        self.url = ""
        self.refused: set[tuple[str, str]] = set()
        self.held: set[tuple[str, str]] = set()
        self.requests: list[tuple[str, str]] = []
        """The method and path of each request."""
        self.waits = threading.Event()
        """Set when a request is held back."""
        self.go = threading.Event()
        self.close: Callable[[], None] = self.go.set
        """Stops the server."""

    @property
    def properties(self) -> dict[str, str]:
        """The properties of PyIceberg's FileIO for this server."""
        return {
            "s3.endpoint": self.url,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
            "s3.connect-timeout": "60",
            "s3.request-timeout": "60",
        }

    @property
    def files(self) -> Any:
        """The pyarrow file system of the server."""
        from pyarrow.fs import S3FileSystem

        host = self.url.removeprefix("http://")
        return S3FileSystem(
            endpoint_override=host,
            scheme="http",
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def put(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(path) as file:
            file.write(data)

    def refuses(self, environ: dict[str, Any]) -> bool:
        return _is_one_of(self.refused, environ)

    def hold(self, environ: dict[str, Any]) -> None:
        if _is_one_of(self.held, environ):
            self.waits.set()
            self.go.wait(240)


def _is_one_of(requests: set[tuple[str, str]], environ: dict[str, Any]) -> bool:
    return any(
        environ["REQUEST_METHOD"] == method and environ["PATH_INFO"].endswith(end)
        for method, end in requests
    )


@contextmanager
def s3() -> Iterator[Store]:
    """Starts a server with the empty bucket `lake`."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    store = Store()
    moto = DomainDispatcherApplication(create_backend_app)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        store.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        store.hold(environ)
        if store.refuses(environ):
            start_response(
                "403 Forbidden",
                [("Content-Type", "application/xml"), ("Content-Length", str(len(REFUSED)))],
            )
            return [REFUSED]
        return moto(environ, start_response)

    class Quiet(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            """Logs nothing."""

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    store.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})

    def close() -> None:
        if thread.is_alive():
            store.go.set()
            server.shutdown()
            server.server_close()
            thread.join()

    store.close = close
    thread.start()
    try:
        store.files.create_dir("lake")
        yield store
    finally:
        close()
