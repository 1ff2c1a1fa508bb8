"""Clients that send too much or too slowly, or are too many: each gets an error in Nessie's
form if HTTP allows it."""

import gc
import gzip
import json
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPException
from urllib.parse import unquote, urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.server.http.connections import MOST_LINES
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import MOST_PATH, Limits
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.pipeline.table import decode_segment
from nessie_cli.server.running import application
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


def test_a_head_that_is_too_large_is_refused():
    with limited(head=2000) as url, speaking(url) as connection:
        connection.sendall(
            POST + b"content-length: 3000000\r\nx-long: " + b"y" * 5000 + b"\r\n\r\n"
        )
        connection.sendall(b"y" * 3_000_000)
        check(connection, 431, "2000 bytes")


def test_a_first_line_that_is_too_long_is_refused():
    with limited(head=2000) as url, speaking(url) as connection:
        connection.sendall(
            b"GET /api/v2/trees/" + b"a" * 5000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )
        check(connection, 431, "2000 bytes")


def test_a_path_that_takes_long_to_decode_is_refused():
    with limited() as url, closing(Client(url)) as client:
        for path in ("/api/v2/trees/", "/ui/", "/iceberg/v1/"):
            long = path + "%25" * (MOST_PATH // 3)
            assert client.send("GET", long).status == 431
            assert client.send("GET", long[:-30]).status in (400, 404)
        # Queries may be longer: those of filters are.
        assert client.send("GET", "/api/v2/config?more=" + "%20" * 19_000).status == 200


def test_a_path_is_decoded_in_little_time():
    segment = "%25" * (MOST_PATH // 3)

    def fastest(decode):
        times = []
        for _ in range(10):
            begun = time.process_time()
            decode(segment)
            times.append(time.process_time() - begun)
        return min(times)

    assert fastest(decode_segment) < 3 * fastest(unquote)


def test_an_idle_client_is_disconnected():
    with limited(idle_seconds=1) as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"\r\n")
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200 ")


BEGINNINGS = {
    "nothing": b"",
    "a head": CONFIG,
    "a second head": CONFIG + b"\r\n" + CONFIG,
    "line ends": b"\r\n",
}


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("what", BEGINNINGS)
def test_a_head_without_an_end_is_not_waited_for(what, drops):
    """Silent clients would use up the connections, and heads that trickle their memory."""
    begun = time.monotonic()
    with limited(idle_seconds=1) as url, speaking(url) as connection:
        connection.sendall(BEGINNINGS[what])
        connection.settimeout(0.1)
        data = None
        while data != b"" and time.monotonic() - begun < 20:
            with suppress(TimeoutError):
                data = connection.recv(65536)
            if drops and what != "nothing" and data != b"":
                with suppress(OSError):
                    connection.sendall(b"a" if CONFIG in BEGINNINGS[what] else b"\r\n")
    assert data == b""


def test_a_connection_in_use_is_kept():
    with limited(idle_seconds=1) as url, speaking(url) as connection:
        for _ in range(3):
            connection.sendall(CONFIG + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.5)


@pytest.mark.parametrize("count", [MOST_LINES - 2, MOST_LINES + 1])
def test_a_head_has_a_limited_number_of_lines(count):
    """The parser makes an object of each of them."""
    with limited() as url, speaking(url) as connection:
        connection.sendall(CONFIG + b"a:\r\n" * (count - 2))
        if count > MOST_LINES:
            assert connection.recv(65536).startswith(b"HTTP/1.1 431 ")
        else:
            connection.sendall(b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("count", [MOST_LINES, MOST_LINES + 1])
def test_a_trailer_has_a_limited_number_of_lines(count):
    body = b"1\r\n{\r\n1\r\n}\r\n0\r\n" + b"a:\r\n" * count
    with limited() as url, speaking(url) as connection:
        connection.sendall(POST + b"transfer-encoding: chunked\r\n\r\n")
        with suppress(OSError):
            connection.sendall(body + b"\r\n")
        data = b""
        with suppress(OSError):
            data = connection.recv(65536)
    assert data.startswith(b"HTTP/1.1 400 " if count <= MOST_LINES else b"")
    assert bool(data) == (count <= MOST_LINES)


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
        answer.expect(413, "100000 bytes")
        client.close()


def test_pipelined_requests_are_all_answered():
    answers = []
    with limited() as url, speaking(url) as connection:
        thread = threading.Thread(
            target=connection.sendall,
            args=[2_000 * (CONFIG + b"\r\n") + CONFIG + b"connection: close\r\n\r\n"],
        )
        thread.start()
        while data := connection.recv(65536):
            answers.append(data)
        thread.join()
    assert b"".join(answers).count(b"HTTP/1.1 200 OK") == 2_001


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.2"])
def test_a_request_to_upgrade_the_protocol_is_answered_in_http(protocol):
    upgrade = f"upgrade: {protocol}\r\nconnection: Upgrade\r\n".encode()
    with limited() as url, speaking(url) as connection:
        connection.sendall(CONFIG + upgrade + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(CONFIG.replace(b"1.1", b"1.0") + b"\r\n")
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200 ")


def test_a_request_to_upgrade_with_a_body_is_refused_and_the_body_is_no_request():
    body = CONFIG + b"\r\n"
    head = POST + b"upgrade: h2c\r\nconnection: Upgrade\r\n"
    head += b"content-length: %d\r\n\r\n" % len(body)
    with limited() as url, speaking(url) as connection:
        connection.sendall(head + body)
        check(connection, 400, "Upgrade")


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


def test_bytes_that_are_not_http_are_refused():
    with limited() as url, speaking(url) as connection:
        connection.sendall(b"good morning\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 400 ")


def test_too_many_requests_at_once_are_refused_in_the_form_of_their_api():
    with limited(connections=2) as url, ExitStack() as stack:
        client, end = Client(url), time.monotonic() + PATIENCE
        for _ in range(2):
            # Its body never arrives.
            connection = stack.enter_context(speaking(url))
            connection.sendall(POST + b"content-length: 10\r\n\r\n{")
        while (refused := client.get("/api/v2/config")).status != 503:
            assert time.monotonic() < end
        assert refused.body["errorCode"] == "SERVICE_UNAVAILABLE"
        assert int(refused.headers["retry-after"]) > 0
        commit = client.send("POST", "/iceberg/v1/main/namespaces", {"namespace": ["a"]})
        # A status of 5xx would mean that the outcome of the write is unknown.
        assert (commit.status, commit.body["error"]["type"]) == (429, "TooManyRequestsException")
        stack.close()
        while client.get("/api/v2/config").status != 200:
            assert time.monotonic() < end
        client.close()


def test_connections_above_twice_the_limit_are_closed_at_once():
    """Otherwise they would use up the open files of the process, the management port's as well."""
    with limited(connections=2) as url, ExitStack() as stack:
        idle = [stack.enter_context(speaking(url)) for _ in range(4)]
        for _ in range(20):
            # The server may close it before it is used.
            with suppress(ConnectionError), speaking(url) as another:
                assert another.recv(1) == b""
        client, end = Client(url), time.monotonic() + PATIENCE
        with pytest.raises((OSError, HTTPException)):
            client.get("/api/v2/config")
        # The connections that were there first are served.
        for connection in idle:
            connection.sendall(CONFIG + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        stack.close()
        while True:
            with suppress(OSError, HTTPException):
                if Client(url).get("/api/v2/config").status == 200:
                    break
            assert time.monotonic() < end


@pytest.mark.parametrize("key", ["a." * 20 + "a", "x" * 501])
def test_a_key_that_is_too_long_is_refused(client, key):
    assert client.get(f"/api/v2/trees/main/contents/{key}").status == 404
    answer = client.commit("main", EMPTY, put(*key.split(".")))
    answer.expect(400, "operations[0].key")
