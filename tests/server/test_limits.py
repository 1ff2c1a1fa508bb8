"""Clients that send too much or too slowly, or are too many: each gets an error in Nessie's
form if HTTP allows it."""

import gc
import gzip
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.server.app import Parts
from nessie_cli.server.failures import HttpFault
from nessie_cli.server.http import Limits
from nessie_cli.server.runtime.connections import Connection
from nessie_cli.server.runtime.running import application
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving

PATIENCE = 120
SLOW = 3.0  # seconds: enough for a busy machine to send promptly
CONFIG = b"GET /api/v2/config HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /api/v2/trees/main/contents HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@contextmanager
def limited(**limits):
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(Limits(**limits)))) as url,
    ):
        yield url


@contextmanager
def speaking(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        yield connection


def whole(connection):
    """Returns all bytes until the server disconnects: status, headers, and the error of the
    body."""
    data = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return (
        int(lines[0].split()[1]),
        dict(line.lower().split(": ", 1) for line in lines[1:]),
        json.loads(body),
    )


def check(connection, status, word):
    found, headers, body = whole(connection)
    assert (found, body["status"], body["serverStackTrace"]) == (status, status, None)
    assert body["reason"] != "Error"
    assert word in body["message"]
    assert headers["connection"] == "close"
    return headers


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""], ids=["complete", "endless"])
def test_a_head_that_is_too_large_is_refused(end):
    with limited(head=2000) as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"x-long: " + b"y" * 5000)
        if not end:
            # The answer must arrive after the client has sent everything.
            for _ in range(100):
                connection.sendall(b"y" * 50_000)
        connection.sendall(end)
        check(connection, 431, "2000 bytes")


def test_a_refused_client_that_keeps_sending_is_disconnected():
    with limited(head=2000, body=100_000) as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"x-long: ")
        with suppress(ConnectionResetError, BrokenPipeError):
            while True:
                connection.sendall(b"y" * 50_000)


def test_requests_before_a_too_large_head_are_answered_first():
    with limited(head=2000) as url, speaking(url) as connection:
        # More than the server reads at once, so the last head begins in the middle of a chunk.
        connection.sendall(3 * (CONFIG + b"\r\n") + CONFIG + b"x-long: " + b"y" * 1_000_000)
        answers = b"".join(iter(lambda: connection.recv(65536), b"")).split(b"HTTP/1.1 ")[1:]
        assert [answer[:3] for answer in answers] == [b"200", b"200", b"200", b"431"]


def test_a_too_large_head_is_reported_to_a_client_that_also_sends_a_body():
    with limited(head=2000) as url, speaking(url) as connection:
        connection.sendall(
            POST + b"content-length: 3000000\r\nx-long: " + b"y" * 5000 + b"\r\n\r\n"
        )
        connection.sendall(b"y" * 3_000_000)
        check(connection, 431, "2000 bytes")


def test_an_invalid_chunked_body_is_refused():
    with limited() as url, speaking(url) as connection:
        connection.sendall(
            POST + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n" + b"y" * 1_000_000
        )
        check(connection, 400, "Invalid HTTP")


def test_a_first_line_that_is_too_long_is_refused():
    with limited(head=2000) as url, speaking(url) as connection:
        connection.sendall(
            b"GET /api/v2/trees/" + b"a" * 5000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )
        check(connection, 431, "2000 bytes")


def test_a_head_that_arrives_too_slowly_times_out():
    with limited(head_seconds=SLOW) as url, speaking(url) as connection:
        connection.sendall(CONFIG)
        check(connection, 408, "did not arrive")


def test_the_second_head_of_a_connection_times_out_as_well():
    with limited(head_seconds=SLOW) as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /api/v2/con")
        check(connection, 408, "did not arrive")


def test_a_silent_client_is_disconnected():
    with limited(head_seconds=0.2) as url, speaking(url) as connection:
        assert connection.recv(100) == b""
    with limited(idle_seconds=0.2) as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"\r\n")
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_arrives_too_slowly_times_out():
    with limited(seconds=0.2) as url, speaking(url) as connection:
        connection.sendall(POST + b"content-length: 10\r\n\r\n{")
        check(connection, 408, "body")


def test_a_too_large_body_is_refused_while_its_client_is_sending():
    with limited(body=1_000_000) as url, speaking(url) as connection:
        connection.sendall(POST + b"content-length: 1900000\r\n\r\n" + b"x" * 1_900_000)
        check(connection, 413, "1000000 bytes")


def test_expect_continue_avoids_sending_a_refused_body():
    with limited(body=1000) as url, speaking(url) as connection:
        connection.sendall(POST + b"content-length: 5000\r\nexpect: 100-continue\r\n\r\n")
        check(connection, 413, "1000 bytes")


def test_a_decompression_bomb_is_refused():
    with limited(decompressed=100_000) as url:
        client = Client(url)
        bomb = gzip.compress(b" " * 5_000_000)
        answer = client.send(
            "POST", "/api/v2/trees/main/contents", raw=bomb, headers={"content-encoding": "gzip"}
        )
        assert (answer.status, "100000 bytes" in answer.body["message"]) == (413, True)
        client.close()


def test_pipelined_requests_are_not_all_read_at_once():
    most, connections, answers = 10_000, [], []
    with limited() as url, speaking(url) as connection:
        thread = threading.Thread(
            target=connection.sendall,
            args=[20_000 * (CONFIG + b"\r\n") + CONFIG + b"connection: close\r\n\r\n"],
        )
        thread.start()
        while data := connection.recv(65536):
            answers.append(data)
            connections = connections or [
                found for found in gc.get_objects() if isinstance(found, Connection)
            ]
            assert all(len(found.pipeline) < most for found in connections)
        thread.join()
    assert b"".join(answers).count(b"HTTP/1.1 200 OK") == 20_001


def test_trailers_are_ignored_and_limited():
    trailers = POST + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    with limited(head=2000) as url:
        with speaking(url) as connection:
            connection.sendall(trailers + b"content-encoding: nonsense\r\n\r\n")
            check(connection, 400, "requestedKeys")
        for more in (b"x-more: y\r\n" * 200_000, b"y" * 2_000_000):
            with speaking(url) as connection:
                connection.sendall(trailers + more)
                check(connection, 431, "2000 bytes")


@pytest.mark.parametrize("header", ["h2c", "websocket"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_request_to_upgrade_the_protocol_is_answered_in_http(header, at_once):
    body = json.dumps({"requestedKeys": [{"elements": ["a"]}]}).encode()
    upgrade = f"upgrade: {header}\r\nconnection: Upgrade, HTTP2-Settings\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n".encode()
    with limited() as url, speaking(url) as connection:
        head = POST + upgrade + b"content-length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body if at_once else head)
        if not at_once:
            connection.sendall(body[:5])
            connection.sendall(body[5:])
        connection.sendall(CONFIG + upgrade + b"\r\n" + CONFIG.replace(b"1.1", b"1.0") + b"\r\n")
        answers = b"".join(iter(lambda: connection.recv(65536), b"")).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200"] * 3


def test_a_client_that_does_not_read_its_answer_is_disconnected():
    with limited(seconds=0.5, idle_seconds=0.5) as url, speaking(url) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # The page is 100 KB; the buffers of both sides hold only a few of them.
        with suppress(ConnectionResetError, BrokenPipeError):
            while True:
                connection.sendall(b"GET /api/docs HTTP/1.1\r\nhost: localhost\r\n\r\n")


def faults():
    return [found for found in gc.get_objects() if isinstance(found, HttpFault)]


def test_refused_requests_leave_no_objects_behind():
    with limited(decompressed=100_000, body=100_000) as url:
        client = Client(url)
        gc.collect()
        others = faults()
        gc.disable()
        try:
            for path in ("trees/main/contents", "trees/main/history/commit"):
                for raw, headers in (
                    (gzip.compress(b" " * 500_000), {"content-encoding": "gzip"}),
                    (b" " * 200_000, {}),
                ):
                    assert (
                        client.send("POST", f"/api/v2/{path}", raw=raw, headers=headers).status
                        == 413
                    )
            end = time.monotonic() + PATIENCE
            # The answering thread may not have released its references yet.
            while any(found not in others for found in faults()):
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            gc.enable()
        client.close()


def test_large_bodies_that_arrive_together_are_limited():
    path, large = "/api/v2/trees/main/contents", b" " * (1 << 20)
    with limited(body=len(large)) as url, ExitStack() as stack:
        client, end = Client(url), time.monotonic() + PATIENCE
        # Four times the limit of a body may arrive at once.
        while (answer := client.send("POST", path, raw=large)).status != 503:
            assert time.monotonic() < end
            connection = stack.enter_context(speaking(url))
            connection.sendall(POST + b"content-length: %d\r\n\r\n" % len(large) + large[:-1])
        assert answer.headers["retry-after"] == "2"
        assert "arriving" in answer.body["message"]
        small = {"requestedKeys": [{"elements": ["a"]}]}
        assert client.send("POST", path, small).status == 200
        stack.close()
        while client.send("POST", path, raw=large).status == 503:
            assert time.monotonic() < end
        client.close()


def test_bytes_that_are_not_http_get_an_error_in_nessies_form():
    with limited() as url, speaking(url) as connection:
        connection.sendall(b"good morning\r\n\r\n")
        check(connection, 400, "Invalid HTTP")


def test_too_many_clients_are_asked_to_retry():
    with limited(connections=2) as url:
        clients = [Client(url) for _ in range(3)]
        assert [client.get("/api/v2/config").status for client in clients[:2]] == [200, 200]
        refused = clients[2].get("/api/v2/config")
        assert (refused.status, refused.body["errorCode"], refused.headers["connection"]) == (
            503,
            "SERVICE_UNAVAILABLE",
            "close",
        )
        assert int(refused.headers["retry-after"]) > 0
        for client in clients:
            client.close()


def test_connections_above_twice_the_limit_are_closed():
    with limited(connections=1) as url, speaking(url) as one, speaking(url) as two:
        for connection in (one, two):
            connection.sendall(CONFIG)
        with speaking(url) as three, suppress(ConnectionResetError):
            assert three.recv(100) == b""


@pytest.mark.parametrize("key", ["a." * 20 + "a", "x" * 501])
def test_a_key_that_is_too_long_is_refused(client, key):
    assert client.get(f"/api/v2/trees/main/contents/{key}").status == 404
    answer = client.commit("main", EMPTY, put(*key.split(".")))
    assert (answer.status, "operations[0].key" in answer.body["message"]) == (400, True)
