"""Failures of PostgreSQL: an outcome is done, stale, nothing written, or unknown and then
resolved. It is never wrong."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any

import psycopg
import pytest

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres, open_postgres
from nessie_cli.store.records import Done, Move, Repeated, Stale, StoredReference
from tests.store.postgres_server import PostgresServer, new_url, shared_server
from tests.store.samples import (
    a_move,
    a_write,
    an_object,
    commit,
    create,
    delete,
    id_of,
    stale,
    write,
)


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = create_postgres(postgres_url)
    write(store, create("main", "0"))
    yield store
    store.close()


def schema_of(url: str) -> str:
    return url.partition("schema=")[2].partition("&")[0]


@contextmanager
def admin(server: PostgresServer, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Returns another connection, in the schema of the store."""
    with server.connect() as connection:
        connection.execute(f"SET search_path TO {schema_of(url)}")
        yield connection


@contextmanager
def locked(server: PostgresServer, url: str, name: str = "main") -> Iterator[None]:
    """Makes commits to a reference wait in their first trip, within the block."""
    with admin(server, url) as connection, connection.transaction():
        connection.execute("SELECT FROM refs WHERE name = %s FOR UPDATE", (name,))
        yield


@contextmanager
def unchangeable(server: PostgresServer, url: str) -> Iterator[None]:
    """Makes commits wait in their second trip, within the block."""
    with admin(server, url) as connection, connection.transaction():
        connection.execute("LOCK TABLE reflog IN SHARE MODE")
        yield


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waiting(server: PostgresServer) -> list[int]:
    """Returns the processes of the server that wait for a lock."""
    with server.connect() as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        ).fetchall()
    return [pid for (pid,) in rows]


# -- a proxy between the store and its server --

_STATEMENTS = (b"P", b"B")
"""The first bytes of messages that prepare or execute a statement."""
_SYNC = b"S\x00\x00\x00\x04"
"""The last message of a round trip. A request to flush may follow."""
_INSIDE = b"Z\x00\x00\x00\x05T"
"""The end of an answer of the server inside a transaction."""


class Proxy:
    """Forwards bytes, except in some modes.

    `hold_commits`: the second trips of commits are held back until `release`, and their clients
    are disconnected. `drop_answers`: bytes that the server sends are lost, and the connection is
    cut; `drop_commits` does so only to clients that have sent a second trip. `swallow`: bytes from
    clients are lost, and connections stay open; `swallow_commits` loses only second trips.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.drop_answers = False
        self.drop_commits = False
        self.hold_commits = False
        self.swallow = False
        self.swallow_commits = False
        self.held: list[tuple[socket.socket, bytes]] = []
        self.refuse = False
        self._open: list[socket.socket] = []
        self._inside: set[socket.socket] = set()
        self._committing: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuse:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := self._next(client):
                if self.swallow:
                    continue
                if server in self._inside and data[:1] in _STATEMENTS:
                    self._committing.add(server)
                    if self.swallow_commits:
                        continue
                    if self.hold_commits:
                        self.held.append((server, data))
                        _cut(client)
                        return
                server.sendall(data)
            _cut(server)

    def _next(self, client: socket.socket) -> bytes:
        data = client.recv(1 << 20)
        # Of a statement, the whole trip.
        while (
            (self.hold_commits or self.swallow_commits)
            and data[:1] in _STATEMENTS
            and _SYNC not in data[-2 * len(_SYNC) :]
        ):
            data += client.recv(1 << 20)
        return data

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if self.drop_answers or (self.drop_commits and server in self._committing):
                    _cut(client)
                    _cut(server)
                    return
                self._committing.discard(server)
                (self._inside.add if data.endswith(_INSIDE) else self._inside.discard)(server)
                client.sendall(data)
            _cut(client)

    def release(self) -> None:
        """Forwards the held requests, and reads the server's answers to them."""
        for server, data in self.held:
            server.sendall(data)
        self.held.clear()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            _cut(one)
            one.close()


def _cut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def through(proxy: Proxy, server: PostgresServer, store: PostgresStore) -> Iterator[PostgresStore]:
    """The same store through the proxy; its commit statement is prepared."""
    url = store.url.replace(f":{server.port}/", f":{proxy.port}/")
    through = open_postgres(url + "&pool_size=2", patience=5)
    for n in range(7):
        assert write(through, create(f"warm {n}")) == Done()
    yield through
    through.close()


def cut_in_time(proxy: Proxy, fault: str) -> threading.Thread:
    """Makes connections work again shortly after the fault."""
    setattr(proxy, fault, True)

    def mend() -> None:
        time.sleep(0.3)
        setattr(proxy, fault, False)

    thread = threading.Thread(target=mend)
    thread.start()
    return thread


def test_a_lost_answer_after_the_commit_is_resolved(
    through: PostgresStore, store: Store, proxy: Proxy
) -> None:
    one = commit("main", "0", "1", "r")
    mending = cut_in_time(proxy, "drop_commits")
    assert write(through, one) == Done()
    mending.join()
    assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert write(through, one) == Repeated(one.request)
    assert len(store.reflog("main")) == 2


def test_each_write_of_a_group_whose_answer_is_lost_has_its_outcome(
    through: PostgresStore, store: Store, proxy: Proxy
) -> None:
    before = create("before")
    write(store, before)
    group = [
        commit("main", "0", "1"),
        commit("main", "0", "x"),
        before,
        create("dev"),
        commit("dev", "no", "y"),
    ]
    mending = cut_in_time(proxy, "drop_commits")
    outcomes = through.commit(group)
    mending.join()
    assert outcomes == [
        Done(),
        stale("main", store.reference("main")),
        Repeated(before.request),
        Done(),
        stale("dev", store.reference("dev")),
    ]
    assert len(store.reflog("main")) == 2


@pytest.mark.parametrize("fault", ["drop_answers", "refuse"])
def test_a_connection_lost_before_the_changes_are_sent_writes_nothing(
    through: PostgresStore, store: Store, proxy: Proxy, fault: str
) -> None:
    one = commit("main", "0", "1", "r")
    if fault == "refuse":
        for client in proxy._open[::2]:
            _cut(client)
    mending = cut_in_time(proxy, fault)
    with pytest.raises(StoreUnavailable) as caught:
        write(through, one)
    assert not isinstance(caught.value, OutcomeUnknown)
    mending.join()
    assert store.request("r") is None
    assert write(through, one) == Done()
    assert len(store.reflog("main")) == 2


def test_changes_that_arrive_after_their_client_has_given_up_are_refused(
    through: PostgresStore, store: Store, proxy: Proxy
) -> None:
    one = commit("main", "0", "1", "r")
    proxy.hold_commits = True
    with pytest.raises(StoreUnavailable) as caught:
        write(through, one)
    proxy.hold_commits = False
    assert not isinstance(caught.value, OutcomeUnknown)
    assert len(proxy.held) == 1
    proxy.release()
    assert write(through, one) == Done()
    assert store.request("r") == one.request
    assert len(store.reflog("main")) == 2


def test_a_late_request_cannot_overtake_its_repetition(
    through: PostgresStore, store: Store, proxy: Proxy
) -> None:
    one = commit("main", "0", "1", "r")
    proxy.hold_commits = True
    with pytest.raises(StoreUnavailable):
        write(through, one)
    proxy.hold_commits = False
    # The server ends a transaction whose client is silent, so others need not wait for long.
    begun = time.monotonic()
    assert write(through, one) == Done()
    assert time.monotonic() - begun < 4
    proxy.release()
    time.sleep(0.3)
    assert write(through, one) == Repeated(one.request)
    assert len(store.reflog("main")) == 2


def test_a_commit_in_flight_is_waited_for(
    through: PostgresStore, store: PostgresStore, server: PostgresServer, proxy: Proxy
) -> None:
    """Its client is disconnected while the server waits for a lock.

    Finding out waits for the transaction, which commits.
    """
    one = commit("main", "0", "1", "r")
    with ThreadPoolExecutor(1) as pool:
        with unchangeable(server, store.url):
            outcome = pool.submit(write, through, one)
            wait_until(lambda: waiting(server))
            for client in proxy._open[:-1:2]:
                _cut(client)
            time.sleep(0.5)
            assert not outcome.done()
        assert outcome.result(30) == Done()
    assert len(store.reflog("main")) == 2


def test_an_unresolvable_outcome_is_reported_as_unknown(
    postgres_url: str, server: PostgresServer, store: Store
) -> None:
    proxy = Proxy(server.port)
    through = open_postgres(
        postgres_url.replace(f":{server.port}/", f":{proxy.port}/"), patience=0.5
    )
    write(through, create("warm"))
    proxy.drop_commits, proxy.refuse = True, True
    with pytest.raises(OutcomeUnknown) as caught:
        through.commit([commit("main", "0", "1", "first"), create("dev")])
    assert caught.value.request_id == "first"
    assert "look for request first" in str(caught.value)
    proxy.drop_commits, proxy.refuse = False, False
    wait_until(lambda: store.request("first"))
    assert through.request("first") == store.request("first")
    through.close()
    proxy.close()


def test_a_read_survives_a_broken_connection(through: PostgresStore, proxy: Proxy) -> None:
    for one in proxy._open:
        _cut(one)
    assert through.reference("main") is not None
    assert write(through, commit("main", "0", "1")) == Done()


# -- the server and its processes exit --


class Crowd:
    """Writers that each increment one reference, and record the outcomes."""

    def __init__(self, store: Store, names: list[str]) -> None:
        self._store = store
        self._over = threading.Event()
        self.done: list[str] = []
        self.refused: list[str] = []
        self.unknown: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(name,)) for name in names]
        for thread in self._threads:
            thread.start()

    def _work(self, name: str) -> None:
        while not self._over.is_set():
            id_ = token_hex(8)
            try:
                found = self._store.basis(name, id_).reference
                assert found is not None
                move = Move(name, "BRANCH", found.target, id_of(id_), 1, "", "commit", "", id_)
                outcome = write(self._store, a_write([an_object(id_)], [move], request_id=id_))
            except OutcomeUnknown as error:
                self.unknown.append(error.request_id)
            except StoreUnavailable:
                self.refused.append(id_)
            else:
                (self.done if outcome == Done() else self.refused).append(id_)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(120)

    def check(self, store: Store) -> None:
        """Checks that done writes exist once, in a chain without gaps, and that refused ones do
        not."""
        rows = [row.move for row in reversed(store.reflog())]
        logged = [
            move.request_id for move in rows if move.operation == "commit" and move.request_id
        ]
        assert len(set(logged)) == len(logged)
        assert set(self.done) <= set(logged)
        assert not set(self.refused) & set(logged)
        assert set(logged) <= {*self.done, *self.unknown}
        for id_ in logged:
            assert store.request(id_) is not None
        for id_ in self.refused:
            assert store.request(id_) is None
        at: dict[str, bytes | None] = {}
        for move in rows:
            assert move.before == at.get(move.name)
            at[move.name] = move.after
        assert {one.name: one.target for one in store.references()} == at
        assert store.get([id_of(id_) for id_ in logged]).keys() == {id_of(id_) for id_ in logged}


def test_killed_backends_lose_no_acknowledged_write(
    postgres_url: str, server: PostgresServer
) -> None:
    store = create_postgres(postgres_url)
    store.commit([create("a"), create("b")])
    crowd = Crowd(store, ["a", "a", "b", "b"])
    killed = 0
    with server.connect() as connection:
        while killed < 40 or len(crowd.done) < 50:
            time.sleep(0.02)
            killed += len(
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'nessie' AND state <> 'idle' AND pid <>"
                    " pg_backend_pid()"
                ).fetchall()
            )
    crowd.end()
    crowd.check(store)
    assert crowd.unknown == []
    store.close()


@pytest.mark.parametrize("how", ["kill", "crash", "fast"])
def test_a_restarted_server_loses_no_acknowledged_write(how: str) -> None:
    server = PostgresServer()
    with new_url(server) as url:
        store = create_postgres(url)
        store.commit([create("a"), create("b")])
        crowd = Crowd(store, ["a", "a", "b"])
        for n in range(3):
            wait_until(lambda n=n: len(crowd.done) > 20 * n)
            if how == "kill":
                server.kill()
            else:
                server.halt({"crash": signal.SIGQUIT, "fast": signal.SIGINT}[how])
            time.sleep(0.1)
            server.start()
        wait_until(lambda: len(crowd.done) > 60)
        crowd.end()
        crowd.check(store)
        # While the server was unavailable, the patience was long enough to resolve all outcomes.
        assert crowd.unknown == []
        store.close()
    server.stop()


def test_an_unavailable_server_is_reported() -> None:
    server = PostgresServer()
    with new_url(server) as url:
        store = create_postgres(url, patience=0.5)
        server.halt()
        calls: list[Callable[[], object]] = [
            store.references,
            lambda: store.put([an_object("a")]),
            lambda: write(store, create("main")),
            lambda: delete(store, [id_of("a")], 0),
            lambda: list(store.scan()),
            lambda: store.lease("main").__enter__(),
        ]
        for call in calls:
            with pytest.raises(StoreUnavailable, match="check that the server runs") as caught:
                call()
            assert "\n" not in str(caught.value)
        server.start()
        assert store.references() == []
        assert write(store, create("main")) == Done()
        store.close()
    server.stop()


# -- limits and races --


def test_a_commit_that_waits_too_long_writes_nothing(
    store: Store, postgres_url: str, server: PostgresServer
) -> None:
    impatient = open_postgres(postgres_url, patience=0.3)
    limited = open_postgres(postgres_url + "&options=-c%20statement_timeout%3D300")
    with locked(server, postgres_url):
        with pytest.raises(StoreUnavailable, match="hold a lock for too long; try again"):
            write(impatient, commit("main", "0", "1", "r"))
        with pytest.raises(StoreUnavailable, match="statement timeout"):
            write(limited, commit("main", "0", "1", "r"))
        assert limited.reference("main") == store.reference("main")
    assert store.request("r") is None
    for one in (impatient, limited):
        assert isinstance(write(one, commit("main", "x", "1")), Stale)
    assert write(limited, commit("main", "0", "1", "r")) == Done()
    impatient.close()
    limited.close()


def test_waiting_for_a_connection_times_out(store: Store, postgres_url: str) -> None:
    small = open_postgres(postgres_url + "&pool_size=2", patience=0.3)
    with small._pool.connection(writing=True):
        # Reads still work: commits may not take all connections.
        assert small.reference("main") == store.reference("main")
        with pytest.raises(
            StoreUnavailable, match=r"no connection of this process became free; .*pool_size=2"
        ):
            write(small, create("dev"))
        with small._pool.connection(), pytest.raises(StoreUnavailable, match="became free"):
            small.reference("main")
    assert store.reference("dev") is None
    assert write(small, create("dev")) == Done()
    small.close()


def _raise_in_trigger(
    connection: psycopg.Connection[Any], table: str, code: str, times: int
) -> None:
    """Makes the first writes to this table fail. The count is not part of the transaction."""
    connection.execute("CREATE SEQUENCE faults")
    connection.execute(
        f"""CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('faults') <= {times} THEN RAISE EXCEPTION 'a fault' USING ERRCODE = '{code}'; END IF;
            RETURN NEW;
        END $$"""
    )
    connection.execute(
        f"CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION"
        " fail()"
    )


@pytest.mark.parametrize("table", ["objects", "refs", "reflog", "requests"])
@pytest.mark.parametrize("code", ["40001", "40P01", "23505"])
def test_lost_races_are_retried(
    store: Store, postgres_url: str, server: PostgresServer, table: str, code: str
) -> None:
    with admin(server, postgres_url) as connection:
        _raise_in_trigger(connection, table, code, 3)
    one = commit("main", "0", "1", "r")
    assert write(store, one) == Done()
    assert write(store, one) == Repeated(one.request)
    assert len(store.reflog("main")) == 2


ERRORS = {
    "53100": "disk is full, nothing was written; free some space",
    "53200": "short of resources",
    "XX001": "damaged",
    "P0001": "a fault",
}


@pytest.mark.parametrize("table", ["objects", "refs", "reflog"])
@pytest.mark.parametrize("code", ERRORS)
def test_errors_of_the_server_write_nothing(
    store: Store, postgres_url: str, table: str, code: str
) -> None:
    said = ERRORS[code]
    with admin(shared_server(), postgres_url) as connection:
        _raise_in_trigger(connection, table, code, 1)
    one = commit("main", "0", "1", "r")
    with pytest.raises(StoreUnavailable, match=said) as caught:
        write(store, one)
    assert "\n" not in str(caught.value)
    assert store.request("r") is None
    assert (len(store.reflog()), store.get([id_of("1")])) == (1, {})
    assert write(store, one) == Done()


def test_a_deadlock_is_retried(store: Store, postgres_url: str, server: PostgresServer) -> None:
    """Another program locks references in the opposite order."""
    store.commit([create("a"), create("b")])
    both = a_write(moves=[a_move("a", "0", "1"), a_move("b", "0", "1")])
    with ThreadPoolExecutor(1) as pool, admin(server, postgres_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT FROM refs WHERE name = 'b' FOR UPDATE")
        outcome: Future[object] = pool.submit(write, store, both)
        wait_until(lambda: waiting(server))
        # PostgreSQL cancels the transaction that detects the deadlock first.
        with suppress(psycopg.errors.DeadlockDetected):
            other.execute("SELECT FROM refs WHERE name = 'a' FOR UPDATE")
        other.execute("ROLLBACK")
        assert outcome.result(30) == Done()


def test_a_read_only_database_can_be_read(store: Store, postgres_url: str) -> None:
    reading = open_postgres(postgres_url + "&options=-c%20default_transaction_read_only%3Don")
    assert reading.references() == store.references()
    for call in (lambda: write(reading, create("dev")), lambda: reading.put([an_object("a")])):
        with pytest.raises(
            StoreUnavailable, match="read-only, nothing was written; connect to the primary"
        ):
            call()
    reading.close()


def test_durability_and_isolation_do_not_depend_on_the_defaults_of_the_database(
    postgres_url: str,
) -> None:
    options = "-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable"
    store = create_postgres(f"{postgres_url}&options={options}")
    with store._pool.connection() as connection:
        for name, value in (
            ("synchronous_commit", "on"),
            ("transaction_isolation", "read committed"),
        ):
            assert connection.execute(f"SHOW {name}").fetchone() == (value,)
    store.close()


def test_missing_tables_are_reported(
    store: Store, postgres_url: str, server: PostgresServer
) -> None:
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema_of(postgres_url)} CASCADE")
    for call in (
        store.references,
        lambda: write(store, create("dev")),
        lambda: store.put([an_object("a")]),
    ):
        with pytest.raises(StoreUnavailable, match="its tables are gone"):
            call()


def test_damaged_objects_are_found(store: Store, postgres_url: str, server: PostgresServer) -> None:
    store.put([an_object("a"), an_object("b")])
    with admin(server, postgres_url) as connection:
        connection.execute(
            "UPDATE objects SET data = set_byte(data, 7, 0) WHERE id = %s", (id_of("a"),)
        )
    with pytest.raises(StoreUnavailable, match=f"object {id_of('a').hex()} is damaged"):
        store.get([id_of("a"), id_of("b")])
    assert store.get([id_of("b")]) == {id_of("b"): an_object("b").data}
    assert [type(one).__name__ for one in store.scan()] == ["DamagedId", "StoredObject"]
    assert store.written_before(id_of("b"), 1, 5).keys() == {id_of("b")}


# -- closing and forking --


def test_closing_during_reads_and_writes(postgres_url: str) -> None:
    store = create_postgres(postgres_url)
    store.commit([create("a"), create("b")])
    store.put(an_object(str(n)) for n in range(2000))
    errors: list[Exception] = []

    def work(call: Callable[[], object]) -> None:
        try:
            while True:
                call()
        except Exception as error:  # noqa: BLE001 - all are looked at
            errors.append(error)

    calls = [
        lambda: list(store.scan()),
        store.references,
        lambda: store.get([id_of("1")]),
        lambda: write(store, commit("a", "x", "y")),
    ]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls * 2]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    store.close()
    for thread in threads:
        thread.join(30)
    assert [type(error) for error in errors] == [StoreUnavailable] * 8
    assert {str(error).endswith("has been closed; open it again") for error in errors} == {True}
    with pytest.raises(StoreUnavailable, match="has been closed"):
        store.references()
    with pytest.raises(StoreUnavailable, match="has been closed"):
        write(store, create("c"))


def _in_child(work: Callable[[], bool]) -> bool:
    child = os.fork()
    if not child:
        # Skips the test's `finally` and pytest.
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_its_own_connections(store: PostgresStore) -> None:
    def work() -> bool:
        outcome = write(store, commit("main", "0", "child"))
        store.close()
        return outcome == Done()

    assert _in_child(work)
    assert store.reference("main") == StoredReference("main", "BRANCH", id_of("child"))
    assert write(store, commit("main", "child", "parent")) == Done()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_store_can_be_forked_while_threads_use_it(store: PostgresStore) -> None:
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            assert store.reference("main") is not None

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for n in range(10):
            assert _in_child(lambda n=n: write(store, create(f"child {n}")) == Done())
        over.set()
        for reader in readers:
            reader.result(30)
    assert len(store.references()) == 11
