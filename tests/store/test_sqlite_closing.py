"""Closing a SQLite store while other threads use it: their calls finish, or report that the
store is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import apsw
import pytest

from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.records import Done, Outcome
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite
from tests.store.samples import a_write, an_object, commit, create, id_of, write


def read(store: SQLiteStore) -> None:
    store.references()
    store.get([id_of("1"), id_of("node 1"), id_of("value 1"), id_of("0")])
    store.reflog()
    list(store.scan())


def commit_one(store: SQLiteStore) -> None:
    assert write(store, a_write([an_object("x", size=100_000)])) == Done()


def take_a_lease(store: SQLiteStore) -> None:
    with store.lease("main"):
        pass


@pytest.mark.parametrize("act", [read, commit_one, take_a_lease])
def test_closing_while_threads_are_busy(filled: str, act: Callable[[SQLiteStore], None]) -> None:
    for _ in range(20):
        store = open_sqlite(filled)
        busy = [Event() for _ in range(3)]

        def work(event: Event, store: SQLiteStore = store) -> str:
            try:
                while True:
                    act(store)
                    event.set()
            except StoreUnavailable as error:
                return str(error)

        with ThreadPoolExecutor(len(busy)) as pool:
            ended = [pool.submit(work, event) for event in busy]
            for event in busy:
                event.wait(30)
            store.close()
            assert [future.result(30) for future in ended] == [
                f"store {filled} has been closed"
            ] * len(busy)
        assert [entry.name for entry in Path(filled).parent.iterdir()] == ["store.sqlite"]
        # A lease that could not be released would only expire.
        connection = apsw.Connection(filled)
        connection.execute("DELETE FROM leases").fetchall()
        connection.close()


def test_closing_while_the_change_counter_is_read(filled: str) -> None:
    for _ in range(20):
        store = open_sqlite(filled)
        begun = Event()

        def work(store: SQLiteStore = store, begun: Event = begun) -> None:
            while store.change_counter() is not None:
                begun.set()

        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(work)
            begun.wait(30)
            store.close()
            ended.result(30)


def test_a_writer_stops_waiting_for_the_lock(filled: str) -> None:
    store, holder = open_sqlite(filled), apsw.Connection(filled)
    holder.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(write, store, commit("main", "1", "2"))
        time.sleep(0.1)
        begun = time.monotonic()
        store.close()
        with pytest.raises(StoreUnavailable, match="has been closed"):
            waiting.result(30)
        assert time.monotonic() - begun < 5
    holder.execute("ROLLBACK")
    holder.close()


def test_a_commit_during_closing_is_done_or_refused(filled: str) -> None:
    """An acknowledged write exists, and a refused one does not."""
    done = 0
    for n in range(30):
        store = open_sqlite(filled)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(write, store, create(f"branch {n}"))
            time.sleep(0.0002 * n)
            store.close()
            try:
                outcome: Outcome | None = future.result(30)
            except StoreUnavailable:
                outcome = None
        again = open_sqlite(filled)
        assert (again.reference(f"branch {n}") is not None) == (outcome == Done())
        again.close()
        done += outcome == Done()
    print("done", done)
