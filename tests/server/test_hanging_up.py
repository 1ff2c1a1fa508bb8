"""A client that disconnects after it has sent a write: the write is carried out."""

import json
import socket
from urllib.parse import urlsplit

import apsw

from nessie_cli import create
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving
from tests.server.waiting import until

PATIENCE = 120


def test_a_commit_is_carried_out_after_its_client_has_disconnected(tmp_path):
    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    body = json.dumps({"commitMeta": {"message": "m"}, "operations": [put("a")]}).encode()
    head = (
        f"POST /api/v2/trees/main@{EMPTY}/history/commit HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with create(path) as repository, serving(repository) as url:
        blocker, client, parts = apsw.Connection(path), Client(url), urlsplit(url)
        blocker.execute("BEGIN IMMEDIATE")
        with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
            connection.sendall(head.encode() + body)
            until(lambda: b"nessie_http_requests_running 2.0" in client.get("/q/metrics").raw)
        blocker.execute("ROLLBACK")
        until(lambda: repository.reference("main").hash != EMPTY)
        client.close()
        blocker.close()
