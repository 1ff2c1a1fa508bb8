"""Random concurrent work of several stores on one database, with broken connections, has a
linearizable history."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from random import Random
from secrets import token_bytes, token_hex

import pytest

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import create_postgres, open_postgres
from nessie_cli.store.records import (
    Done,
    Move,
    Outcome,
    Repeated,
    RequestRecord,
    Stale,
    StoredObject,
    Write,
)
from tests.history import History, Row
from tests.store.postgres_server import shared_server

NAMES = ("main", "dev", "test")
SECONDS = 4


class Worker:
    """Reads, commits, lists and repeats requests at random."""

    def __init__(self, store: Store, history: History, seed: int) -> None:
        self._store = store
        self._history = history
        self._random = Random(seed)
        self._last: Write | None = None

    def work(self, until: float) -> None:
        while time.monotonic() < until:
            try:
                self._random.choice(
                    (
                        self._commit,
                        self._commit,
                        self._commit,
                        self._read,
                        self._list,
                        self._repeat,
                        self._lease,
                    )
                )()
            except StoreUnavailable:
                # A failed read has no result; writes are recorded where they are made.
                time.sleep(0.001)

    def _read(self) -> None:
        name = self._random.choice(NAMES)
        self._history.read(name, lambda: self._store.reference(name).target)  # type: ignore[union-attr]

    def _list(self) -> None:
        called = time.monotonic()
        for one in self._store.references():
            self._history.add(one.name, called, one.target)

    def _commit(self, lease: str = "", name: str = "", *, end_lease: bool = False) -> None:
        names = [name] if name else self._random.sample(NAMES, self._random.choice((1, 1, 1, 2)))
        writes = []
        for _ in range(self._random.choice((1, 1, 2, 5))):
            known = {move.name: move.after for one in writes for move in one.moves}
            at = {one: known.get(one) or self._seen(one) for one in names}
            writes.append(_a_write(at))
        called = time.monotonic()
        try:
            outcomes = self._store.commit(writes, lease=lease, end_lease=end_lease)
        except OutcomeUnknown:
            self._history.unknown.update(_targets(writes))
            raise
        except StoreUnavailable:
            self._history.refused.update(_targets(writes))
            raise
        for write, outcome in zip(writes, outcomes, strict=True):
            self._record(write, outcome, called)

    def _seen(self, name: str) -> bytes:
        def look() -> bytes:
            reference = self._store.basis(name, "").reference
            assert reference is not None
            return reference.target

        return self._history.read(name, look)

    def _record(self, write: Write, outcome: Outcome, called: float) -> None:
        if outcome == Done():
            self._last = write
            for move in write.moves:
                assert move.after is not None
                self._history.add(move.name, called, move.after, write=move.after)
            return
        assert isinstance(outcome, Stale)
        assert outcome.current is not None
        self._history.refused.update(_targets([write]))

    def _repeat(self) -> None:
        """Checks that an acknowledged write stays done for every store."""
        if self._last is not None:
            assert self._store.commit([self._last]) == [Repeated(self._last.request)]

    def _lease(self) -> None:
        name = self._random.choice(NAMES)
        with self._store.lease(name) as lease:
            self._commit(lease, name, end_lease=self._random.random() < 0.5)


def _a_write(at: dict[str, bytes]) -> Write:
    """Returns a write that moves each reference to a unique target."""
    id_ = token_hex(8)
    after = {name: token_bytes(32) for name in at}
    moves = [Move(name, "BRANCH", at[name], after[name], 1, "", "commit", "", id_) for name in at]
    return Write(
        RequestRecord(id_, "", b"digest", b"", 1),
        [StoredObject(one, 1, b"data") for one in after.values()],
        moves,
    )


def _targets(writes: list[Write]) -> set[bytes]:
    return {move.after for write in writes for move in write.moves if move.after is not None}


@pytest.mark.parametrize("seed", range(2))
def test_random_work_of_several_stores_is_linearizable(
    postgres_url: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History()
    with ExitStack() as closing:
        stores = [
            create_postgres(postgres_url),
            open_postgres(postgres_url),
            open_postgres(postgres_url + "&pool_size=3"),
        ]
        for store in stores:
            closing.callback(store.close)
        stores[0].commit([_create(name) for name in NAMES])
        until = time.monotonic() + SECONDS
        workers = [Worker(store, history, 100 * seed + n) for n, store in enumerate(stores * 3)]
        threads = [threading.Thread(target=worker.work, args=(until,)) for worker in workers]
        for thread in threads:
            thread.start()
        _break_connections(until, Random(seed))
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        checked = sum(history.check(name, rows(stores[0], name)) for name in history.registers)
        with capsys.disabled():
            print(
                f" {checked} operations checked, {len(history.refused)} refused,"
                f" {len(history.unknown)} unknown",
                end="",
            )
        assert checked > 300
        assert list(stores[0].verify_file()) == []
        assert history.unknown == set()


def rows(store: Store, name: str) -> list[Row]:
    """Returns the log of a reference.

    Every write moves its references to unique targets, which identify it.
    """
    moves = [row.move for row in reversed(store.reflog(name))]
    assert moves[0].before is None
    assert [move.before for move in moves[1:]] == [move.after for move in moves[:-1]], (
        "an update was lost"
    )
    return [Row(move.after, move.after) for move in moves]


def _create(name: str) -> Write:
    id_ = token_hex(8)
    return Write(
        RequestRecord(id_, "", b"", b"", 1),
        (),
        [Move(name, "BRANCH", None, token_bytes(32), 1, "", "create", "", id_)],
    )


def _break_connections(until: float, random: Random) -> None:
    with shared_server().connect() as connection:
        while time.monotonic() < until:
            time.sleep(random.uniform(0.01, 0.2))
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
                " 'nessie' ORDER BY random() LIMIT 1"
            )


def test_the_chain_of_a_reference_that_many_create_and_delete_is_whole(postgres_url: str) -> None:
    """A reference that does not exist has no row that a writer could lock."""
    until = time.monotonic() + 2
    done: list[Write] = []

    def work(store: Store, random: Random) -> None:
        while time.monotonic() < until:
            name = random.choice(["x", "y"])
            before = store.reference(name)
            target = before.target if before is not None else None
            after = token_bytes(32) if target is None else None
            move = Move(name, "BRANCH", target, after, 1, "", "create", "", "")
            write = Write(RequestRecord("", "", b"", b"", 1), (), [move])
            if store.commit([write]) == [Done()]:
                done.append(write)

    with (
        closing(create_postgres(postgres_url)) as first,
        closing(open_postgres(postgres_url)) as second,
    ):
        threads = [
            threading.Thread(target=work, args=((first, second)[n % 2], Random(n)))
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        moves = [row.move for row in first.reflog()]
        assert len(done) == len(moves) > 20
        for name in ("x", "y"):
            of_name = [one for one in reversed(moves) if one.name == name]
            assert [one.before for one in of_name[1:]] == [one.after for one in of_name[:-1]]
        assert list(first.verify_file()) == []


def test_entries_of_the_reflog_are_numbered_without_large_gaps(postgres_url: str) -> None:
    with closing(create_postgres(postgres_url)) as store:
        for n in range(5):
            assert store.commit([_create(f"branch {n}"), _create("once")])[0] == Done()
        numbers = [row.number for row in reversed(store.reflog())]
        assert numbers[0] == 1
        # A refused move leaves a gap of one.
        assert numbers == [1, 2, 3, 5, 7, 9]
