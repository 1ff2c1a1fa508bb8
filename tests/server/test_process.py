"""`nessie serve` as a process: starting, refusing, stopping."""

import json
import signal
import socket
import subprocess
from urllib.parse import urlsplit

import apsw
import pytest

from nessie_cli import create
from tests.server.client import EMPTY, Client, put
from tests.server.processes import PATIENCE, SERVE, started

TIMEOUT = PATIENCE


def test_it_serves_until_a_signal():
    with started("--store", "memory:") as (process, url):
        client = Client(url)
        assert client.commit("main", EMPTY, put("a")).status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
        with pytest.raises(OSError):
            Client(url).get("/api/v2/config")


@pytest.mark.parametrize("workers", [1, 2])
def test_accepted_requests_are_finished_before_it_ends(tmp_path, workers):
    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    body = json.dumps({"commitMeta": {"message": "m"}, "operations": [put("a")]}).encode()
    head = f"POST /api/v2/trees/main@{EMPTY}/history/commit HTTP/1.1\r\nhost: localhost\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    with started("--store", path, "--workers", str(workers)) as (process, url):
        blocker = apsw.Connection(path)
        blocker.execute("BEGIN IMMEDIATE")
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), TIMEOUT) as connection:
            connection.sendall(f"{head}expect: 100-continue\r\n\r\n".encode())
            # The server reports when it begins to read the body: from then on the request is
            # accepted.
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
            connection.sendall(body)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.7)
            blocker.execute("ROLLBACK")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert process.wait(TIMEOUT) == 0
    assert answer.startswith(b"HTTP/1.1 200 ")
    with create(path) as repository:
        assert (
            repository.reference("main").hash
            == json.loads(answer.partition(b"\r\n\r\n")[2])["targetBranch"]["hash"]
        )


def test_the_access_log_goes_to_stdout():
    with started("--store", "memory:", "--access-log", stdout=subprocess.PIPE) as (process, url):
        Client(url).get("/api/v2/config")
        process.send_signal(signal.SIGTERM)
        assert json.loads(process.stdout.readline())["route"] == "/api/v2/config"
        assert process.wait(TIMEOUT) == 0


def run(*arguments):
    return subprocess.run(
        [*SERVE, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def test_a_missing_store_is_not_created(tmp_path):
    done = run("--store", str(tmp_path / "nosuch.sqlite"))
    assert (done.returncode, done.stdout) == (4, "")
    assert len(done.stderr.strip().splitlines()) <= 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_public_address_is_refused(host):
    done = run("--store", "memory:", "--port", "0", "--host", host)
    assert done.returncode == 6
    assert "--insecure" in done.stderr


def test_a_public_address_can_be_allowed():
    with started("--store", "memory:", "--host", "0.0.0.0", "--insecure") as (_, url):
        assert Client(url.replace("0.0.0.0", "127.0.0.1")).get("/api/v2/config").status == 200


def test_a_port_in_use_is_reported_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--store", "memory:", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 7
    assert len(done.stderr.strip().splitlines()) == 1
