"""Two servers and two embedded writers on one PostgreSQL database have a linearizable
history.

Each run takes NESSIE_TEST_HISTORY_SECONDS (default 5).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from random import Random
from subprocess import Popen

import pytest

from nessie_cli import connect, create
from nessie_cli.repository.base import Repository
from tests.faults.clients import Client, begin, check
from tests.history import History
from tests.server.processes import started
from tests.store.postgres_server import new_url, shared_server

SECONDS = float(os.environ.get("NESSIE_TEST_HISTORY_SECONDS", "5"))
CLIENTS = 6
PATIENCE = 120


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as found:
        yield found


class Server:
    """`nessie serve` on a port that stays the same across restarts."""

    def __init__(self, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._url = url
        self._running: AbstractContextManager[tuple[Popen[str], str]]
        self.start()

    def start(self) -> None:
        self._running = started("--store", self._url, "--port", str(self.port))
        self._running.__enter__()

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self._running.__exit__(None, None, None)

    def connect(self) -> Repository:
        return connect(f"http://127.0.0.1:{self.port}/api/v2")


def run(
    url: str, seed: str, meanwhile: Callable[[Server, float], None]
) -> tuple[str, list[Client]]:
    """Runs clients on two servers and two embedded writers, and checks their history.

    Returns the counts as text.
    """
    history = History()
    with ExitStack() as closing:
        embedded = [
            closing.enter_context(opened(url, who="embedded")) for opened in (create, connect)
        ]
        begin(embedded[0], history)
        servers = [Server(url) for _ in range(2)]
        for server in servers:
            closing.callback(server.kill)
        clients = []
        for number in range(CLIENTS):
            # A client has its own connections to the servers, as another machine has.
            remote = [closing.enter_context(server.connect()) for server in servers]
            clients.append(Client([*remote, *embedded], history, f"{seed} {number}"))
        until = time.monotonic() + SECONDS
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(client.work, until) for client in clients]
            meanwhile(servers[0], until)
            for one in working:
                one.result(SECONDS + PATIENCE)
        await_idle()
        checked = check(embedded[1], history)
    assert checked > 100
    resolved, away = (
        sum(getattr(client, name) for client in clients) for name in ("resolved", "away")
    )
    counts = (
        f"{len(history.refused)} refused, {resolved} resolved by request id,"
        f" {len(history.unknown)} unknown, {away} times away"
    )
    return f" {checked} operations checked, {counts}", clients


def await_idle() -> None:
    """Waits until PostgreSQL is idle, because a killed process may have left a running commit."""
    end = time.monotonic() + PATIENCE
    with shared_server().connect() as connection:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state"
            " <> 'idle' AND pid <> pg_backend_pid()"
        )
        while connection.execute(query).fetchone() != (0,):
            assert time.monotonic() < end
            time.sleep(0.01)


def test_two_servers_and_two_embedded_writers_are_linearizable(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, clients = run(url, "calm", lambda *_: None)
    with capsys.disabled():
        print(summary, end="")
    assert sum(client.away for client in clients) == 0


def test_a_history_with_a_restarted_server_is_linearizable(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random("kills")

    def kill(server: Server, until: float) -> None:
        while time.monotonic() < until - 2:
            time.sleep(random.uniform(0.2, 1.5))
            server.kill()
            # Long enough for clients to find nobody there.
            time.sleep(random.uniform(0.1, 0.4))
            server.start()

    summary, clients = run(url, "kills", kill)
    with capsys.disabled():
        print(summary, end="")
    assert sum(client.away for client in clients) > 0
