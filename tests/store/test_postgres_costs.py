"""Round trips of the PostgreSQL store: one per call, two per commit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from nessie_cli.store.postgres import PostgresStore, open_postgres
from nessie_cli.store.postgres import create_postgres as create_store
from nessie_cli.store.records import Done
from nessie_cli.store.rows import SETTINGS, with_check
from tests.store.postgres_server import shared_server
from tests.store.samples import COMMIT, a_write, an_object, commit, create, id_of
from tests.store.test_postgres_faults import admin

_READY = b"Z\x00\x00\x00\x05"
"""The beginning of the last message of every answer of the server."""


class Counter:
    """Forwards bytes and counts the server's answers."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.answers = self.bytes = 0
        self._target = port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for source, target, counting in ((client, server, False), (server, client, True)):
                    threading.Thread(
                        target=self._pass, args=(source, target, counting), daemon=True
                    ).start()

    def _pass(self, source: socket.socket, target: socket.socket, counting: bool) -> None:
        with suppress(OSError), source, target:
            while data := source.recv(1 << 20):
                self.answers += data.count(_READY) if counting else 0
                self.bytes += len(data) if counting else 0
                target.sendall(data)
            # The other direction may be waiting to read.
            target.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def counted(postgres_url: str) -> Iterator[tuple[PostgresStore, Counter]]:
    server = shared_server()
    create_store(postgres_url).close()
    counter = Counter(server.port)
    store = open_postgres(postgres_url.replace(f":{server.port}/", f":{counter.port}/"))
    yield store, counter
    store.close()
    counter.close()


def test_a_commit_takes_two_round_trips_and_any_other_call_one(
    counted: tuple[PostgresStore, Counter],
) -> None:
    store, counter = counted
    objects = [an_object(str(n), COMMIT) for n in range(1000)]
    store.put(objects)
    store.commit([create("main", "0"), a_write(settings={"a": "1"})])
    at = 0

    def group() -> None:
        nonlocal at
        writes = [commit("main", str(n), str(n + 1)) for n in range(at, at + 64)]
        at += 64
        assert store.commit(writes) == [Done()] * 64

    new = iter(range(1000))
    commits: list[Callable[[], object]] = [
        group,
        lambda: store.commit([commit("main", "stale", "x")]),
        lambda: store.commit([create(f"new {next(new)}"), a_write(settings={"a": "1"})]),
    ]
    calls: list[Callable[[], object]] = [
        lambda: store.basis("main", "r"),
        lambda: store.bases([(str(n), f"request {n}") for n in range(64)]),
        lambda: store.get([one.id for one in objects]),
        lambda: store.written_before(id_of("900"), COMMIT, 500),
        store.references,
        lambda: store.reflog("main", None, 1000),
        lambda: store.find_indexed(b"x", None, 100),
        lambda: store.request("r"),
        lambda: store.put(objects[:5]),
    ]
    for call in (*commits, *calls):
        # psycopg prepares a statement at its sixth execution.
        for _ in range(7):
            call()
        before = counter.answers
        call()
        assert counter.answers == before + (2 if call in commits else 1), call


def test_a_read_costs_no_transaction(counted: tuple[PostgresStore, Counter]) -> None:
    """Not even for the first one, on a connection that exists."""
    store, counter = counted
    store.settings()
    before = counter.answers
    store.references()
    assert counter.answers == before + 1


def test_large_settings_are_read_again_only_after_changes(
    counted: tuple[PostgresStore, Counter], postgres_url: str
) -> None:
    store, counter = counted
    other = open_postgres(postgres_url)
    other.commit([a_write(settings={"large": "x" * 1_000_000, "a": "1"})])
    assert store.basis("main", "r").settings == other.settings()
    before = counter.bytes
    for _ in range(7):
        assert store.bases([("main", "r")])[0].settings == other.settings()
    assert counter.bytes - before < 10_000
    other.commit([a_write(settings={"a": "2"})])
    assert store.basis("main", "r").settings.values["a"] == "2"
    # A server that lost the last change, and got another one with the same version.
    with admin(shared_server(), postgres_url) as connection:
        rows = {row[0]: row for row in connection.execute(SETTINGS).fetchall()}
        check = with_check("settings", "a", "3", *rows["a"][2:4])[-1]
        update = "UPDATE settings SET value = '3', check_sum = %s WHERE name = 'a'"
        connection.execute(update, (check,))
    assert store.basis("main", "r").settings.values["a"] == "3"
    other.close()
