"""Metadata files in S3, read by PyIceberg's FileIO from a server on a loopback port."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.metadata import read_content


@dataclass
class Bucket:
    """Objects by path, and the options to read them."""

    port: int
    objects: dict[str, bytes] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.port}",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
            "s3.connect-timeout": "60",
            "s3.request-timeout": "60",
        }


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    served = Bucket(0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            data = served.objects.get(self.path)
            missing = b"<Error><Code>NoSuchKey</Code></Error>"
            if data is not None and (wanted := self.headers.get("Range")):
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                data = data[int(first) : int(last or len(data)) + 1]
            else:
                self.send_response(404 if data is None else 200)
            self.send_header("Content-Length", str(len(missing if data is None else data)))
            self.end_headers()
            if with_body:
                self.wfile.write(missing if data is None else data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_table_behind_s3_is_read_and_its_location_kept(tmp_path, folder_catalog, rows, bucket):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    table.append(rows)
    data = Path(table.metadata_location).read_bytes()
    bucket.objects = {
        "/lake/db/t/1.metadata.json": data,
        "/lake/db/t/1.gz.metadata.json": gzip.compress(data),
    }
    for name in ("1.metadata.json", "1.gz.metadata.json"):
        content = read_content(f"s3://lake/db/t/{name}", bucket.properties)
        assert content.metadata_location == f"s3://lake/db/t/{name}"
        assert content.snapshot_id == table.current_snapshot().snapshot_id


def test_a_missing_file_and_a_file_without_metadata_are_named(bucket):
    bucket.objects = {"/lake/package.json": b'{"name": "x"}'}
    for name, message in {
        "none.json": "no such file",
        "package.json": "not an Iceberg metadata file: 'format-version' is missing",
    }.items():
        with pytest.raises(InvalidInput) as caught:
            read_content(f"s3://lake/{name}", bucket.properties)
        assert caught.value.message == f"s3://lake/{name}: {message}"


def test_a_server_that_does_not_answer_is_not_invalid_input():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        properties = Bucket(unused.getsockname()[1]).properties
        with pytest.raises(StoreUnavailable) as caught:
            read_content("s3://lake/x.metadata.json", properties)
    assert caught.value.message.startswith("s3://lake/x.metadata.json cannot be read: ")
    assert "\n" not in caught.value.message
    handlers = {type(handler) for handler in logging.getLogger("pyiceberg").handlers}
    assert logging.NullHandler in handlers, (
        "what the library warns of is not printed beside the error"
    )
