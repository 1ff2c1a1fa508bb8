"""Loads into PostgreSQL with lost connections, and the server's work for a dump."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from psycopg import sql

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres, open_postgres
from nessie_cli.store.postgres.dump import PostgresDump
from tests.store.contract_dump import contents, fill, initialise
from tests.store.postgres_server import PostgresServer
from tests.store.test_postgres_faults import Proxy, wait_until


class CommitProxy(Proxy):
    """Cuts the connection of a client that sends COMMIT, before it arrives or before its answer."""

    fault = ""
    happened = False

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self.fault and b"COMMIT" in data:
                    self.happened = True
                    if self.fault == "before":
                        break
                    self.drop_answers = True
                server.sendall(data)
        for one in (client, server) if self.fault == "before" and self.happened else (server,):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[CommitProxy]:
    proxy = CommitProxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = create_postgres(postgres_url)
    initialise(store)
    yield store
    store.close()


@pytest.fixture
def source(other: Store) -> Store:
    fill(other)
    return other


def through(
    store: PostgresStore, proxy: CommitProxy, server: PostgresServer, patience: float = 10
) -> PostgresStore:
    return open_postgres(
        store.url.replace(f":{server.port}/", f":{proxy.port}/"), patience=patience
    )


def load(store: PostgresStore, source: Store, proxy: CommitProxy, fault: str) -> None:
    proxy.fault = fault
    try:
        with source.dump() as dump:
            store.load(dump)
    finally:
        assert proxy.happened
        store.close()


def test_a_load_whose_commit_was_lost_changes_nothing(
    store: PostgresStore, source: Store, proxy: CommitProxy, server: PostgresServer
) -> None:
    before = contents(store)
    with pytest.raises(StoreUnavailable) as caught:
        load(through(store, proxy, server), source, proxy, "before")
    assert not isinstance(caught.value, OutcomeUnknown)
    assert contents(store) == before
    with source.dump() as dump:
        store.load(dump)
    assert contents(store) == contents(source)


def test_a_load_with_a_lost_answer_is_resolved(
    store: PostgresStore, source: Store, proxy: CommitProxy, server: PostgresServer
) -> None:
    def mend() -> None:
        wait_until(lambda: contents(store) == contents(source))
        proxy.drop_answers, proxy.fault = False, ""

    mender = threading.Thread(target=mend)
    mender.start()
    load(through(store, proxy, server), source, proxy, "after")
    mender.join()
    assert contents(store) == contents(source)


def test_an_unresolvable_load_is_reported_as_unknown(
    store: PostgresStore, source: Store, proxy: CommitProxy, server: PostgresServer
) -> None:
    with pytest.raises(OutcomeUnknown, match="load again"):
        load(through(store, proxy, server, patience=0.5), source, proxy, "after")
    assert contents(store) == contents(source)


def test_a_dump_sorts_no_objects(
    store: PostgresStore, source: Store, server: PostgresServer
) -> None:
    """An index gives the server the objects in the order of numbers, so it need not collect them
    first."""
    with source.dump() as dump:
        store.load(dump)
    with store.dump() as dump:
        assert isinstance(dump, PostgresDump)
        rows = dump._connection.execute(
            sql.SQL("EXPLAIN {}").format(dump._objects_query())
        ).fetchall()
        plan = "\n".join(line for (line,) in rows)
    assert "Merge Append" in plan
    assert "objects_by_kind" in plan
    assert "  Sort  " not in plan


def test_a_dump_that_the_server_cancels_is_reported(
    store: PostgresStore, source: Store, server: PostgresServer
) -> None:
    with source.dump() as dump:
        store.load(dump)
    with store.dump() as dump:
        objects = dump.objects()
        [[process]] = dump._connection.execute("SELECT pg_backend_pid()").fetchall()  # type: ignore[attr-defined]
        with server.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (process,))
            query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            wait_until(lambda: connection.execute(query, (process,)).fetchall() == [(0,)])
        with pytest.raises(StoreUnavailable):
            list(objects)
