"""A PostgreSQL server that does not answer: every wait ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres, open_postgres
from nessie_cli.store.records import Done
from tests.store.postgres_server import PostgresServer
from tests.store.samples import an_object, commit, create, id_of, write
from tests.store.test_postgres_faults import Proxy, locked, unchangeable, wait_until, waiting


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = create_postgres(postgres_url)
    write(store, create("main", "0"))
    yield store
    store.close()


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


def backends(server: PostgresServer, application: str) -> list[int]:
    """Returns the processes of the server that serve one application."""
    with server.connect() as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = %s", (application,)
        ).fetchall()
    return [pid for (pid,) in rows]


@contextmanager
def stopped(server: PostgresServer, application: str) -> Iterator[None]:
    """Stops the processes that serve one application, as a server that hangs does."""
    processes = backends(server, application)
    assert processes
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.fixture
def impatient(postgres_url: str, store: PostgresStore) -> Iterator[PostgresStore]:
    """The same store, with connections that a test recognizes, and little patience."""
    opened = open_postgres(postgres_url + "&application_name=impatient", patience=1)
    assert write(opened, create("warm")) == Done()
    yield opened
    opened.close()


def test_a_commit_to_a_stopped_process_writes_nothing(
    impatient: PostgresStore, store: Store, server: PostgresServer
) -> None:
    one = commit("main", "0", "1", "r")
    with stopped(server, "impatient"):
        begin = time.monotonic()
        with pytest.raises(StoreUnavailable, match="did not answer for 1 seconds") as caught:
            write(impatient, one)
        assert time.monotonic() - begin < 5
        assert not isinstance(caught.value, OutcomeUnknown)
        # The store goes on with new connections, and the lost attempt stays excluded.
        assert store.request("r") is None
        assert write(impatient, one) == Done()
    time.sleep(0.5)
    assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert len(store.reflog("main")) == 2


def test_other_calls_to_a_stopped_process_end(
    impatient: PostgresStore, server: PostgresServer
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: impatient.put([an_object("a")]),
        lambda: impatient.lease("main").__enter__(),
    ]
    for call in calls:
        impatient.references()
        with stopped(server, "impatient"):
            begin = time.monotonic()
            with pytest.raises(StoreUnavailable, match="did not answer for 1 seconds"):
                call()
            assert time.monotonic() - begin < 5
    impatient.references()
    with stopped(server, "impatient"):
        # A read is asked again on a new connection.
        assert [one.name for one in impatient.references()] == ["main", "warm"]


def test_a_commit_whose_process_stops_before_the_changes_writes_nothing(
    impatient: PostgresStore, store: Store, server: PostgresServer, postgres_url: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with locked(server, postgres_url):
            outcome = pool.submit(write, impatient, commit("main", "0", "1", "r"))
            wait_until(lambda: waiting(server))
            blocked = stopped(server, "impatient")
            blocked.__enter__()
        with pytest.raises(StoreUnavailable, match="did not answer") as caught:
            outcome.result(30)
        assert not isinstance(caught.value, OutcomeUnknown)
    blocked.__exit__(None, None, None)
    assert write(store, commit("main", "0", "1", "r")) == Done()


def test_a_commit_whose_process_stops_inside_its_changes_is_unknown(
    impatient: PostgresStore, store: Store, server: PostgresServer, postgres_url: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with unchangeable(server, postgres_url):
            outcome = pool.submit(write, impatient, commit("main", "0", "1", "r"))
            wait_until(lambda: waiting(server))
            blocked = stopped(server, "impatient")
            blocked.__enter__()
        # It holds its attempt, so nobody can find out whether it will succeed.
        with pytest.raises(OutcomeUnknown):
            outcome.result(30)
    blocked.__exit__(None, None, None)
    # It goes on: whether it succeeds, the request id tells.
    wait_until(lambda: not waiting(server))
    time.sleep(0.3)
    moved = store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert (store.request("r") is not None) == moved


def test_a_commit_through_a_network_that_swallows_everything_ends(
    store: Store, proxy: Proxy, server: PostgresServer, postgres_url: str
) -> None:
    url = postgres_url.replace(f":{server.port}/", f":{proxy.port}/") + "&connect_timeout=2"
    opened = open_postgres(url, patience=1)
    write(opened, create("warm"))
    proxy.swallow = True
    begin = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        write(opened, commit("main", "0", "1", "r"))
    assert not isinstance(caught.value, OutcomeUnknown)
    with pytest.raises(StoreUnavailable):
        opened.references()
    assert time.monotonic() - begin < 15
    proxy.swallow = False
    assert store.request("r") is None
    assert write(opened, commit("main", "0", "1", "r")) == Done()
    opened.close()


@pytest.mark.parametrize("timeout", ["0", "2", "60"])
def test_a_read_through_a_network_that_swallows_everything_ends_in_time(
    store: Store, proxy: Proxy, server: PostgresServer, postgres_url: str, timeout: str
) -> None:
    """The repetition on a new connection does not wait longer than the patience either."""
    behind = postgres_url.replace(f":{server.port}/", f":{proxy.port}/")
    opened = open_postgres(f"{behind}&connect_timeout={timeout}", patience=6)
    write(opened, create("warm"))
    proxy.swallow = True
    begin = time.monotonic()
    with pytest.raises(StoreUnavailable):
        opened.references()
    assert time.monotonic() - begin < 8
    with pytest.raises(StoreUnavailable):
        opened.references()
    assert time.monotonic() - begin < 16
    proxy.swallow = False
    assert [one.name for one in opened.references()] == ["main", "warm"]
    opened.close()


def test_a_read_waits_no_longer_for_a_connection(
    postgres_url: str, store: Store, server: PostgresServer
) -> None:
    """All connections are busy with a server that hangs."""
    url = f"{postgres_url}&application_name=few&pool_size=2"
    opened = open_postgres(url, patience=3)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: opened.references(), range(6)))
        with stopped(server, "few"):
            begin = time.monotonic()
            reads = [pool.submit(opened.references) for _ in range(6)]
            for read in reads:
                read.exception(60)
            assert time.monotonic() - begin < 8
    opened.close()


def test_a_silent_connection_takes_the_other_idle_ones_along(
    impatient: PostgresStore, server: PostgresServer
) -> None:
    together = Barrier(3)

    def read(_: int) -> list[str]:
        with impatient._pool.connection():
            together.wait(30)
        return [one.name for one in impatient.references()]

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(read, range(3)))
        assert len(backends(server, "impatient")) >= 3
        with stopped(server, "impatient"):
            # The repetition gets a new connection, not another one to the same stopped server.
            assert [one.name for one in impatient.references()] == ["main", "warm"]


def test_changes_that_the_network_swallows_are_unknown(
    store: Store, proxy: Proxy, server: PostgresServer, postgres_url: str
) -> None:
    url = postgres_url.replace(f":{server.port}/", f":{proxy.port}/") + "&connect_timeout=2"
    opened = open_postgres(url, patience=1)
    write(opened, create("warm"))
    proxy.swallow_commits, proxy.refuse = True, True
    begin = time.monotonic()
    with pytest.raises(OutcomeUnknown, match="look for request r"):
        write(opened, commit("main", "0", "1", "r"))
    assert time.monotonic() - begin < 15
    proxy.swallow_commits, proxy.refuse = False, False
    # Meanwhile the server has ended the transaction, so others do not wait for it.
    assert store.request("r") is None
    assert write(opened, commit("main", "0", "1", "r")) == Done()
    opened.close()


@contextmanager
def without_standby(server: PostgresServer) -> Iterator[None]:
    """Commits wait for a standby that does not exist."""
    reload = "SELECT pg_reload_conf()"
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
        connection.execute(reload)
        try:
            wait_until(lambda: _standby(server) == "gone")
            yield
        finally:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute(reload)
            wait_until(lambda: not _standby(server))


def _standby(server: PostgresServer) -> str:
    with server.connect() as connection:
        rows = connection.execute("SHOW synchronous_standby_names").fetchall()
    return str(rows[0][0])


@pytest.mark.slow
def test_a_commit_that_waits_for_a_dead_standby_is_unknown_in_time(
    store: Store, server: PostgresServer, postgres_url: str
) -> None:
    """The look for its outcome waits for the same standby, within the patience of the commit."""
    patience = 6
    opened = open_postgres(postgres_url, patience=patience)
    write(opened, create("warm"))
    with without_standby(server):
        begin = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            write(opened, commit("main", "0", "1", "r"))
        assert time.monotonic() - begin < 1.6 * patience
    wait_until(lambda: store.request("r") is not None)
    assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    opened.close()


def test_closing_ends_calls_that_wait_for_a_silent_server(
    postgres_url: str, store: Store, server: PostgresServer
) -> None:
    opened = open_postgres(postgres_url + "&application_name=closed", patience=60)
    write(opened, create("warm"))
    with stopped(server, "closed"), ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(write, opened, commit("main", "0", "1", "r"))
        time.sleep(0.3)
        begin = time.monotonic()
        opened.close()
        with pytest.raises(StoreUnavailable, match="was closed") as caught:
            outcome.result(10)
        assert not isinstance(caught.value, OutcomeUnknown)
        assert time.monotonic() - begin < 10
    assert store.reference("main").target == id_of("0")  # type: ignore[union-attr]
