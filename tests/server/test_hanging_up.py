"""Clients that stop sending: one that has closed its sending side waits for its answer; one
that has disconnected does not."""

import json
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import apsw

from nessie_cli import connect, create
from nessie_cli.server.runtime.connections import PROBE_EVERY
from tests.server.client import EMPTY, put
from tests.server.serving import serving

PATIENCE = 120


def request(method, path, body=None, *headers):
    data = json.dumps(body).encode() if body is not None else b""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: localhost",
        *headers,
        *([f"content-length: {len(data)}"] if data else []),
    ]
    return (
        "\r\n".join(
            [*lines, *(["content-type: application/json"] if data else []), "", ""]
        ).encode()
        + data
    )


def commit(*keys):
    return request(
        "POST",
        f"/api/v2/trees/main@{EMPTY}/history/commit",
        {"commitMeta": {"message": "m"}, "operations": list(map(put, keys))},
    )


@contextmanager
def half_closed(url, *requests):
    """A connection that has sent its requests and closed its sending side."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        connection.sendall(b"".join(requests))
        connection.shutdown(socket.SHUT_WR)
        yield connection


def answers(connection):
    """Yields status and body of the final answers until the server disconnects."""
    data, found = b"".join(iter(lambda: connection.recv(65536), b"")), []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status != 100:
            size = int(head.lower().partition(b"content-length: ")[2].split()[0])
            found.append((status, data[:size]))
            data = data[size:]
    return found


def test_a_commit_is_answered_after_its_client_stops_sending():
    with (
        connect("memory:") as repository,
        serving(repository) as url,
        half_closed(url, commit("a")) as connection,
    ):
        [(status, body)] = answers(connection)
        assert status == 200
        assert json.loads(body)["targetBranch"]["hash"] == repository.reference("main").hash


def test_complete_pipelined_requests_are_answered():
    whole = [commit("a"), request("GET", "/api/v2/trees/main"), commit("b")]
    for more in (b"", commit("c")[:-5], b"GET /api/v2/tr"):
        with (
            connect("memory:") as repository,
            serving(repository) as url,
            half_closed(url, *whole, more) as connection,
        ):
            assert [status for status, _ in answers(connection)] == [200] * 3
            assert len(list(repository.log("main"))) == 2
        with serving() as url, half_closed(url, more) as connection:
            assert connection.recv(100) == b""


def test_a_slow_answer_is_sent_to_a_client_that_stopped_sending(tmp_path):
    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    with create(path) as repository, serving(repository) as url:
        blocker = apsw.Connection(path)
        blocker.execute("BEGIN IMMEDIATE")
        with half_closed(url, commit("a")) as connection:
            threading.Timer(3 * PROBE_EVERY, blocker.execute, ["ROLLBACK"]).start()
            assert [status for status, _ in answers(connection)] == [200]


def test_a_refused_client_that_stops_sending_gets_the_reason():
    with serving() as url, half_closed(url, commit("a"), b"good morning\r\n\r\n") as connection:
        assert [status for status, _ in answers(connection)] == [200, 400]
