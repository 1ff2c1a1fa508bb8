"""Several processes over one store: one socket, replacement of dead workers, shared metrics
and log."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest

from nessie_cli import connect, create
from nessie_cli.server.web_server import GRACE
from tests.server.client import EMPTY, Client, put, table
from tests.server.processes import PATIENCE, SERVE, started
from tests.server.waiting import until

COMMITS = 'nessie_http_requests_total{method="POST",route="/api/v2/trees/{ref}/history/commit",status="200"}'


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "catalog.sqlite")
    create(found).close()
    return found


def children(pid):
    """Returns the process ids of the workers of a server."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        # A zombie process is dead as well.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def number(url, name):
    client = Client(url)
    text = client.get("/q/metrics").raw.decode()
    client.close()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0


def test_several_processes_write_without_losses_and_share_metrics(path):
    writers, each = 6, 10
    with started("--store", path, "--workers", "2", "--access-log", stdout=subprocess.PIPE) as (
        process,
        url,
    ):

        def work(writer):
            client = Client(url)
            answers = [
                client.commit(
                    "main", EMPTY, put(f"t{writer}-{n}", content=table(n)), message=f"{writer} {n}"
                )
                for n in range(each)
            ]
            seen = client.head()
            client.close()
            return answers, seen

        with ThreadPoolExecutor(writers) as pool:
            results = list(pool.map(work, range(writers)))
        assert {answer.status for answers, _ in results for answer in answers} == {200}
        # Each process publishes its metrics several times per second.
        until(lambda: number(url, COMMITS) == writers * each)
        assert number(url, "nessie_processes") == 2
        process.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE) == 0
    assert (
        sum(line["route"] == "/api/v2/trees/{ref}/history/commit" for line in lines)
        == writers * each
    )
    with connect(path) as repository:
        log = {entry.hash: entry.meta.message for entry in repository.log("main")}
        assert list(repository.check()) == []
    assert len(log) == writers * each
    assert {
        answer.body["targetBranch"]["hash"] for answers, _ in results for answer in answers
    } == log.keys()
    assert all(seen in log for _, seen in results)


def test_all_workers_accept_connections(path):
    with started("--store", path, "--workers", "2") as (process, url):
        clients = []

        def all_have_some():
            clients.append(Client(url))
            assert clients[-1].get("/api/v2/config").status == 200
            mine = {client.port for client in clients}
            shares = [len(mine & connected_to(child)) for child in children(process.pid)]
            assert sum(shares) == len(clients)
            return min(shares) > 0

        until(all_have_some)
        for client in clients:
            client.close()


def connected_to(pid):
    """Returns the remote ports of a process's TCP connections."""
    open_ = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        # Connections that close meanwhile do not count.
        with suppress(FileNotFoundError):
            open_.add(str(entry.readlink()))
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(row[2].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in open_}


def commit_some(url, name):
    for n in range(6):
        client = Client(url)
        assert client.commit("main", EMPTY, put(f"{name}-{n}")).status == 200
        client.close()


def test_a_dead_worker_is_replaced(path):
    with started("--store", path, "--workers", "2") as (process, url):
        before = children(process.pid)
        assert len(before) == 2
        commit_some(url, "before")
        # A request is counted after its answer has been sent.
        # Both workers count 6, so each has shared what it has counted.
        until(lambda: all(number(url, COMMITS) == 6 for _ in range(20)))
        os.kill(before[0], signal.SIGKILL)
        said = json.loads(process.stderr.readline())
        assert str(before[0]) in said["message"]
        until(lambda: len(children(process.pid)) == 2 and before[0] not in children(process.pid))
        commit_some(url, "after")
        # The counts of the dead worker remain, but its process is no longer counted.
        until(lambda: number(url, COMMITS) == 12)
        until(lambda: number(url, "nessie_processes") == 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_sighup_replaces_all_workers(path):
    with started("--store", path, "--workers", "2") as (process, url):
        before = set(children(process.pid))
        process.send_signal(signal.SIGHUP)
        said = [json.loads(process.stderr.readline())["message"] for _ in before]
        assert all(any(str(pid) in line for line in said) for pid in before)
        assert len(children(process.pid)) == 2
        assert before.isdisjoint(children(process.pid))
        client = Client(url)
        assert client.commit("main", EMPTY, put("t")).status == 200
        client.close()
        assert number(url, "nessie_processes") == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_workers_stay_if_their_successors_cannot_start(path, tmp_path):
    """The file is invalid when SIGHUP arrives."""
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    with started("--store", path, "--workers", "2", "--tokens", str(tokens)) as (process, url):
        before = children(process.pid)
        tokens.chmod(0o644)
        process.send_signal(signal.SIGHUP)
        lines = [process.stderr.readline() for _ in range(2)]
        assert "others may read or change it" in lines[0]
        assert "the other workers stay as they are" in json.loads(lines[1])["message"]
        assert children(process.pid) == before
        assert health(url) == 200
        tokens.chmod(0o600)
        process.send_signal(signal.SIGHUP)
        until(lambda: len(now := children(process.pid)) == 2 and not {*before} & {*now})
        assert health(url) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()


def test_a_worker_that_cannot_start_is_tried_again_after_growing_pauses(path, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    with started("--store", path, "--workers", "2", "--tokens", str(tokens)) as (process, url):
        before = children(process.pid)
        tokens.chmod(0o644)
        os.kill(before[0], signal.SIGKILL)
        assert "has ended" in process.stderr.readline()
        begin = time.monotonic()
        for _ in range(3):
            assert "others may read or change it" in process.stderr.readline()
            assert "the server tries again" in process.stderr.readline()
        # The pauses between three attempts.
        assert time.monotonic() - begin >= 0.5 + 1
        assert health(url) == 200
        tokens.chmod(0o600)
        with ExitStack() as closing:
            connect_to_all_workers(process, url, closing)


def health(url):
    client = Client(url)
    status = client.get("/q/health/ready").status
    client.close()
    return status


def test_a_server_that_replaces_its_workers_stops_at_once(path):
    """Requests whose bodies are on their way delay the end of each worker."""
    with started("--store", path, "--workers", "3") as (process, url), ExitStack() as closing:
        head = b"POST /api/v2/trees/main/history/commit HTTP/1.1\r\nhost: localhost\r\n"
        head += b"content-type: application/json\r\ncontent-length: 5000\r\n\r\n"
        connect_to_all_workers(process, url, closing, head)
        process.send_signal(signal.SIGHUP)
        until(lambda: len(children(process.pid)) == 4)
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        until(lambda: not listens(url))
        assert time.monotonic() - begin < GRACE
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def listens(url):
    try:
        socket.create_connection(address_of(url)).close()
    except ConnectionRefusedError:
        return False
    return True


def connect_to_all_workers(process, url, closing, begin=b""):
    """Opens connections that send `begin`, until each worker has some."""
    ports = set()

    def connect():
        connection = closing.enter_context(socket.create_connection(address_of(url)))
        connection.sendall(begin)
        ports.add(connection.getsockname()[1])
        workers = children(process.pid)
        return len(workers) > 1 and all(ports & connected_to(worker) for worker in workers)

    until(connect)


def address_of(url):
    parts = urlsplit(url)
    return parts.hostname, parts.port


def test_a_second_signal_ends_it_at_once(path):
    blocker = apsw.Connection(path)
    with started("--store", path, "--workers", "2") as (process, url):
        workers = children(process.pid)
        blocker.execute("BEGIN IMMEDIATE")
        client = Client(url)
        with ThreadPoolExecutor(1) as pool:
            commit = pool.submit(client.commit, "main", EMPTY, put("t"))
            until(lambda: number(url, "nessie_http_requests_running") > 1)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            assert not any(map(is_alive, workers))
            with pytest.raises((OSError, HTTPException)):
                commit.result()
    blocker.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_all_its_workers(path, how):
    with started("--store", path, "--workers", "2") as (process, url):
        client = Client(url)
        assert client.get("/api/v2/config").status == 200
        workers = children(process.pid)
        process.send_signal(how)
        assert process.wait(PATIENCE) == 0
        assert not any(map(is_alive, workers))
        with pytest.raises((OSError, HTTPException)):
            client.get("/api/v2/config")


def test_workers_exit_when_their_server_is_killed(path):
    with started("--store", path, "--workers", "2") as (process, _):
        workers = children(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(map(is_alive, workers)))


def test_a_store_in_memory_allows_only_one_process():
    done = subprocess.run(
        [*SERVE, "--store", "memory:", "--workers", "2", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert "one process" in done.stderr
