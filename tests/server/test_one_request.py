"""One request cannot stop the server: while a hostile one is answered, health checks answer."""

import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from nessie_cli import create
from tests.server.client import EMPTY, Client, put
from tests.server.hostile import FORM, HOSTILE, NAMESPACES, SCHEMA, TABLES, TOKENS
from tests.server.processes import started
from tests.server.waits import PATIENCE, SOON, shortest, worst_wait


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    (folder / "warehouse").mkdir()
    store = str(folder / "catalog.sqlite")
    create(store).close()
    with started("--store", store, "--warehouse", f"lake={folder / 'warehouse'}") as (_, found):
        client = Client(found)
        client.send("POST", NAMESPACES, {"namespace": ["a"], "properties": {}})
        table = {"name": "t", "schema": SCHEMA}
        assert client.send("POST", f"{NAMESPACES}/a/tables", table).status == 200
        client.close()
        yield found


def worst_health(url, sends, count=1):
    """Returns the statuses of the requests, and the longest wait of a health check meanwhile.

    The statuses are those of the first attempt. See `shortest`.
    """
    statuses = []

    def attempt():
        found, wait = _worst_health(url, sends, count)
        statuses.append(found)
        return wait

    wait = shortest(attempt)
    return statuses[0], wait


def _worst_health(url, sends, count):
    def send(_):
        client = Client(url, PATIENCE)
        try:
            return client.send(**sends).status
        finally:
            client.close()

    with ThreadPoolExecutor(count) as pool:
        pending = [pool.submit(send, number) for number in range(count)]
        wait = worst_wait(url, pending)
    return {one.result() for one in pending}, wait


@pytest.mark.parametrize("what", HOSTILE)
def test_health_answers_while_a_hostile_request_is_answered(url, what):
    hostile = HOSTILE[what]
    statuses, wait = worst_health(url, hostile.request(), hostile.count)
    assert statuses == {hostile.status}
    assert wait < SOON


def test_health_answers_while_the_first_request_to_iceberg_is_answered(tmp_path):
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    with started("--store", store) as (_, url):
        client = Client(url)
        client.get("/q/health/live")
        client.close()
        statuses, wait = worst_health(url, {"method": "GET", "path": "/iceberg/v1/config"}, 4)
        assert statuses == {404}
        assert wait < SOON


def test_health_answers_while_many_operations_are_committed(tmp_path):
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    commit = {
        "method": "POST",
        "path": f"/api/v2/trees/main@{EMPTY}/history/commit",
        "body": {
            "commitMeta": {"message": "many"},
            "operations": [put(f"t{number:06}") for number in range(90_000)],
        },
    }
    with started("--store", store) as (_, found):
        statuses, wait = worst_health(found, commit)
    assert statuses == {200}
    assert wait < SOON


def test_a_form_of_the_largest_size_is_read(url):
    client = Client(url)
    form = b"grant_type=client_credentials&client_secret=" + b"x" * 8000
    answer = client.send("POST", TOKENS, raw=form, headers=FORM)
    assert (answer.status, answer.body["error"]) == (400, "unauthorized_client")
    client.close()


def test_two_headers_with_credentials_are_refused(url):
    parts = urlsplit(url)
    for path in ("/api/v2/config", "/iceberg/v1/config", "/iceberg/v1/main/namespaces"):
        with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
            twice = "authorization: Bearer a\r\n" * 2
            head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{twice}connection: close\r\n\r\n"
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


GIANT = "1" * 5000


def field(type_):
    return {"type": "struct", "fields": [{"id": 1, "name": "c", "required": True, "type": type_}]}


BUCKETS = {"fields": [{"source-id": 1, "name": "p", "transform": f"bucket[{GIANT}]"}]}
MERGE = {"fromRefName": "main", "fromHash": "a" * 64, "defaultKeyMergeMode": GIANT}
RETENTION = {"defaultCutoffPolicy": f"1w{' ' * 20_000}x", "newFilesGracePeriod": f"P{GIANT}D"}
GIANTS = [
    ("GET", f"/api/v2/trees?max-records={GIANT}", None),
    ("GET", f"/api/v2/trees/main~{GIANT}", None),
    ("GET", f"/api/v2/trees/main*{GIANT}", None),
    ("GET", f"/api/v2/trees?filter={GIANT}%3E0", None),
    ("GET", f"/iceberg/v1/main/namespaces?pageSize={GIANT}&pageToken={GIANT}", None),
    ("POST", "/api/v2/trees/main/contents", f'{{"requestedKeys": {GIANT}}}'),
    ("POST", f"/api/v2/trees/main@{'a' * 64}/history/commit", f'{{"operations": {GIANT}}}'),
    ("POST", f"/api/v2/trees/main@{'a' * 64}/history/merge", json.dumps(MERGE)),
    ("POST", NAMESPACES, f'{{"namespace": ["b"], "properties": {{"a": {GIANT}}}}}'),
    ("POST", TABLES, json.dumps({"name": "v", "schema": field(f"fixed[{GIANT}]")})),
    ("POST", TABLES, json.dumps({"name": "v", "schema": field(f"decimal({GIANT}, 2)")})),
    (
        "POST",
        TABLES,
        json.dumps({"name": "v", "schema": field("int"), "partition-spec": BUCKETS}),
    ),
    (
        "POST",
        TABLES,
        json.dumps({"name": "w", "schema": SCHEMA, "properties": {"format-version": GIANT}}),
    ),
    (
        "PUT",
        "/api/v2/config",
        json.dumps({"config": {"type": "GARBAGE_COLLECTOR", **RETENTION}}),
    ),
]


@pytest.mark.parametrize("number", range(len(GIANTS)))
def test_a_giant_number_is_a_fault_of_the_client(url, number):
    method, path, body = GIANTS[number]
    client = Client(url)
    begun = time.monotonic()
    answer = client.send(
        method,
        path,
        raw=None if body is None else body.encode(),
        headers=None if body is None else {"content-type": "application/json"},
    )
    assert 400 <= answer.status < 500, answer.raw[:500]
    assert time.monotonic() - begun < 2 * SOON
    client.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_management_port_answers_while_all_connections_are_idle(tmp_path, workers):
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--management-port", str(port), "--workers", str(workers))
    with started("--store", store, *options) as (_, url):
        parts = urlsplit(url)
        idle = [
            socket.create_connection((parts.hostname, parts.port), PATIENCE) for _ in range(1100)
        ]
        management = Client(f"http://127.0.0.1:{port}")
        for path in ("/q/health", "/q/health/live", "/q/health/ready", "/q/metrics"):
            assert management.get(path).status == 200
        assert management.get("/api/v2/config").status == 404
        assert management.get("/iceberg/v1/config").status == 404
        management.close()
        for connection in idle:
            connection.close()


@pytest.mark.parametrize("hard", [2_000, 20_000])
def test_a_server_may_open_more_files_than_the_usual_limit(hard):
    """Otherwise 1,024 idle connections would use up the files of the management port, too."""
    program = (
        "import resource; from nessie_cli.server.web_server import raise_file_limit;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard})); raise_file_limit();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == min(hard, 16_384)


def test_slow_clients_delay_nobody(url):
    parts = urlsplit(url)
    head = b"POST /api/v2/trees/main/contents HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    starts = [
        head[:40],
        head + b"content-length: 1000\r\n\r\n[",
        head + b"transfer-encoding: chunked\r\n\r\n1\r\n[\r\n",
        head + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\n[\r\n" * 1_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000,
    ]
    stop = threading.Event()

    def trickle(start):
        with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
            connection.sendall(start)
            stop.wait(PATIENCE)

    with ThreadPoolExecutor(50) as pool:
        for number in range(50):
            pool.submit(trickle, starts[number % len(starts)])
        _, wait = worst_health(url, {"method": "GET", "path": "/api/v2/config"}, 4)
        stop.set()
    assert wait < SOON


CHUNKED = (
    b"POST /api/v2/trees/main/contents HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)
BURSTS = {
    "chunks": b"%b%b0\r\n\r\n" % (CHUNKED, b"1\r\n \r\n" * 150_000),
    "requests": b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 3_000,
    "headers": b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 60_000,
}


def burst(connection, data):
    # The server may refuse it before the end.
    with suppress(ConnectionError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def worst_wait_of_bursts(url, data, health, count):
    """Returns the longest wait of a health check while many connections send the same."""
    parts = urlsplit(url)
    connections = [
        socket.create_connection((parts.hostname, parts.port), PATIENCE) for _ in range(count)
    ]
    with ThreadPoolExecutor(count) as pool:
        pending = [pool.submit(burst, connection, data) for connection in connections]
        wait = worst_wait(health, pending)
    for connection in connections:
        connection.close()
    return wait


@pytest.mark.parametrize("what", BURSTS)
def test_health_answers_while_many_connections_send_tiny_parts(url, what):
    data = BURSTS[what]
    assert shortest(lambda: worst_wait_of_bursts(url, data, url, 20)) < SOON


@pytest.mark.parametrize("what", BURSTS)
def test_the_management_port_answers_while_the_main_port_is_busy(tmp_path, what):
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with started("--store", store, "--management-port", str(port)) as (_, url):
        health, data = f"http://127.0.0.1:{port}", BURSTS[what]
        assert shortest(lambda: worst_wait_of_bursts(url, data, health, 30)) < SOON
