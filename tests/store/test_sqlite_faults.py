"""Faults of a SQLite store: an error before and after every statement, a full disk, a failing disk, a lock that is held for too long."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from nessie_cli.errors import NessieError, OutcomeUnknown, StoreUnavailable
from nessie_cli.store.base import Done, Store, StoredObject, Write
from nessie_cli.store.sqlite import SQLiteStore, open_sqlite
from tests.store.samples import Clock, a_move, an_object, commit, id_of


class Fault(Exception):
    """What goes wrong."""


def contents(store: Store) -> object:
    objects = sorted(store.scan(), key=lambda o: o.id)
    return objects, store.references(), store.reflog(), store.settings()


def everything(n: int) -> Write:
    """A write that uses every kind of statement."""
    moves = [
        a_move("main", str(n), str(n + 1), request_id=f"request {n}"),
        a_move("new", None, "1", request_id=f"request {n}"),
        a_move("new", "1", None, request_id=f"request {n}"),
        a_move(f"branch {n}", None, "1", request_id=f"request {n}"),
    ]
    return Write([an_object(f"object {n}"), an_object(f"big {n}", size=3000)], moves, {"a": str(n), "b": None, f"c{n}": "1"})


class Faults:
    """Counts the statements of the connections opened while it is on, and fails at (or from) one of them."""

    def __init__(self) -> None:
        self.armed = False
        self.count = 0
        self.at = -1
        self.lasting = False

    def __call__(self, connection: apsw.Connection) -> None:
        connection.set_exec_trace(self.before)

    def before(self, _: object, __: str, ___: object) -> bool:
        if self.armed:
            self.count += 1
            if self.count == self.at or (self.lasting and self.count > self.at):
                raise Fault
        return True


@contextmanager
def hooked(hook: Callable[[apsw.Connection], None]) -> Iterator[None]:
    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def write_plainly(store: SQLiteStore) -> object:
    return store.write(everything(1))


def write_twice_in_a_block(store: SQLiteStore) -> object:
    with store.exclusive():
        store.write(commit("main", "1", "0"))
        store.write(commit("main", "0", "1"))
        return store.write(everything(1))


def put_and_delete_in_a_block(store: SQLiteStore) -> object:
    with store.exclusive():
        store.put([an_object("put")])
        store.delete([id_of("value 1"), id_of("1")], 2_000_000_000)
    return Done()


@pytest.mark.parametrize("lasting", [False, True], ids=["one fault", "and every statement after it, ROLLBACK too"])
@pytest.mark.parametrize("act", [write_plainly, write_twice_in_a_block, put_and_delete_in_a_block])
def test_a_fault_before_any_statement_leaves_nothing_half_written(filled: str, act: Callable[[SQLiteStore], object], lasting: bool) -> None:
    faults = Faults()
    faults.lasting = lasting
    with hooked(faults):
        store = open_sqlite(filled)
        before = contents(store)
        for at in range(1, 1000):
            faults.count, faults.at, faults.armed = 0, at, True
            try:
                answer = act(store)
            except Fault:
                answer = None
            faults.armed = False
            other = open_sqlite(filled)
            if answer is not None:
                assert answer == Done()
                assert contents(other) == contents(store) != before
                break
            assert contents(other) == before
            # The failed writer holds no lock, neither does it see what it has not written.
            assert other.put([]) is None
            with other.exclusive():
                assert contents(store) == before
            other.close()
        other.close()
        store.close()
    assert at > 5


def test_a_fault_after_the_commit_statement_leaves_all_of_it_written(filled: str) -> None:
    """The answer is lost, the write is not: the request id finds it."""

    def fail(*_: object) -> int:
        raise Fault

    def hook(connection: apsw.Connection) -> None:
        connection.set_wal_hook(fail)

    with hooked(hook):
        store = open_sqlite(filled)
        with pytest.raises((Fault, NessieError)):
            store.write(everything(1))
        assert len(store.find_request("request 1")) == 4
        assert store.get([id_of("object 1")])
        assert store.settings() == {"a": "1", "c1": "1"}
        store.close()


@pytest.mark.parametrize("denied", ["refs", "reflog", "objects", "settings"])
def test_a_statement_that_sqlite_itself_refuses(filled: str, denied: str) -> None:
    def authorize(action: int, table: str | None, *_: object) -> int:
        return apsw.SQLITE_DENY if action == apsw.SQLITE_INSERT and table == denied else apsw.SQLITE_OK

    def hook(connection: apsw.Connection) -> None:
        connection.set_authorizer(authorize)

    with hooked(hook):
        store = open_sqlite(filled)
        before = contents(store)
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite: "):
            store.write(everything(1))
        assert contents(store) == before
        store.close()


# -- full disk ----------------------------------------------------------------------------------------------------------------------


@contextmanager
def room_for(pages: int) -> Iterator[None]:
    """SQLite's own limit of the file's size answers exactly what a full disk answers."""

    def limit(connection: apsw.Connection) -> None:
        used = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {used + pages}").fetchall()

    with hooked(limit):
        yield


def big(n: int) -> StoredObject:
    from random import Random

    return StoredObject(id_of(f"big {n}"), 1, Random(n).randbytes(9000))


def test_a_full_disk_writes_nothing_and_says_so(filled: str) -> None:
    with room_for(5):
        store = open_sqlite(filled)
        before = contents(store)
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite: the disk is full, nothing was written; make room and try again") as caught:
            store.write(Write([big(n) for n in range(5)], [a_move("main", "1", "2")], {"a": "1"}))
        assert "\n" not in str(caught.value)
        assert contents(store) == before
        assert store.write(commit("main", "1", "2")) == Done()  # a small one fits
        store.close()
    store = open_sqlite(filled)
    assert store.write(Write([big(n) for n in range(5)], [a_move("main", "2", "3")])) == Done()
    store.close()


def test_a_full_disk_in_an_exclusive_block_undoes_the_block_even_if_the_error_is_swallowed(filled: str) -> None:
    """SQLite may end the whole transaction by itself; going on as if it were open would write half of the block."""
    with room_for(5):
        store = open_sqlite(filled)
        before = contents(store)
        with suppress(StoreUnavailable), store.exclusive():
            store.write(commit("main", "1", "2"))
            with suppress(StoreUnavailable):
                store.write(Write([big(n) for n in range(5)]))
            store.write(commit("main", "2", "3"))
        after = contents(store)
        assert after == before or store.reference("main").target == id_of("3")  # type: ignore[union-attr]
        store.close()


def test_a_transaction_that_sqlite_has_ended_is_not_taken_for_an_open_one(filled: str) -> None:
    with open_connection() as connections:
        store = open_sqlite(filled)
        before = contents(store)
        with pytest.raises(StoreUnavailable, match="ended early"), store.exclusive():  # noqa: PT012
            store.write(commit("main", "1", "2"))
            connections[-1].execute("ROLLBACK")  # as SQLite does after some errors
            with suppress(StoreUnavailable):
                store.write(commit("main", "1", "3"))
        assert contents(store) == before
        assert store.write(commit("main", "1", "2")) == Done()
        store.close()


@contextmanager
def open_connection() -> Iterator[list[apsw.Connection]]:
    connections: list[apsw.Connection] = []
    with hooked(connections.append):
        yield connections


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here; test_a_full_disk_writes_nothing_and_says_so tests the same by SQLite's limit")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path, filled: str, tmp_path: Path) -> None:
    path = shutil.copy(filled, small_disk)
    store = open_sqlite(path)
    for n in range(1, 1000):
        before = contents(store)
        try:
            store.write(Write([big(n)], [a_move("main", str(n), str(n + 1))]))
        except StoreUnavailable as error:
            assert "the disk is full, nothing was written" in str(error)  # noqa: PT017
            break
    assert n > 3
    assert contents(store) == before
    store.close()
    # With room again, everything acknowledged is there and writing goes on. (Without room SQLite cannot empty its log file.)
    roomy = open_sqlite(str(shutil.copytree(small_disk, tmp_path / "roomy") / "store.sqlite"))
    assert contents(roomy) == before
    assert roomy.write(Write([big(n)], [a_move("main", str(n), str(n + 1))])) == Done()
    roomy.close()


def test_a_disk_without_any_room_left_is_one_line_with_the_way_out(small_disk: Path, filled: str) -> None:
    path = shutil.copy(filled, small_disk)
    with suppress(OSError), (small_disk / "fill").open("wb", buffering=0) as fill:
        while fill.write(bytes(1000)):
            pass
    with pytest.raises(StoreUnavailable, match=r"store\.sqlite: the disk is full.*make room.*and try again$"):
        open_sqlite(path).write(commit("main", "1", "2"))
    (small_disk / "fill").unlink()
    store = open_sqlite(path)
    assert store.write(commit("main", "1", "2")) == Done()
    store.close()


# -- failing disk, locks ------------------------------------------------------------------------------------------------------------

FAILING = """
import resource, signal, sys
from nessie_cli.errors import NessieError, OutcomeUnknown
from nessie_cli.store.sqlite import open_sqlite
from tests.store.samples import commit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_sqlite(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
for n in range(1, 1000):
    try:
        store.write(commit("main", str(n), str(n + 1), f"request {n}"))
    except OutcomeUnknown as error:
        print(n, error.request_id, "found" if store.find_request(error.request_id) else "not there", error, sep="|")
        break
store.close()
"""


def test_a_disk_that_fails_during_the_commit_leaves_the_outcome_to_be_asked_for(filled: str) -> None:
    """A limit of the file size makes the operating system refuse the bytes of the log file."""
    done = subprocess.run([sys.executable, "-c", FAILING, filled], capture_output=True, text=True, check=True)
    number, request, found, message = done.stdout.strip().split("|")
    assert request == f"request {number}"
    assert found == "not there"
    assert "the disk failed during a commit" in message
    store = open_sqlite(filled)
    assert store.reference("main").target == id_of(number)  # type: ignore[union-attr]
    assert [row.move.after for row in store.reflog()] == [id_of(str(n)) for n in range(int(number), -1, -1)]
    store.close()


def test_a_lock_held_for_too_long_is_one_line_and_reading_goes_on(filled: str) -> None:
    holder, store = open_sqlite(filled), open_sqlite(filled, patience=0.05)
    with holder.exclusive():
        holder.write(commit("main", "1", "2"))
        for attempt in (lambda: store.write(commit("main", "1", "3")), lambda: store.put([an_object("x")]), store.exclusive().__enter__):
            with pytest.raises(StoreUnavailable, match=r"store\.sqlite: another process has been writing to it for too long; try again"):
                attempt()
        assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert store.reference("main").target == id_of("2")  # type: ignore[union-attr]
    assert store.write(commit("main", "2", "3")) == Done()
    holder.close()
    store.close()


def test_a_closed_store_says_so(filled: str) -> None:
    store = open_sqlite(filled)
    store.close()
    for attempt in (store.references, lambda: store.write(commit("main", "1", "2")), lambda: store.get([id_of("1")])):
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite: has been closed"):
            attempt()


def test_an_outcome_is_unknown_only_where_a_commit_failed() -> None:
    from nessie_cli.store.sqlite_errors import failure

    assert isinstance(failure("p", apsw.IOError("x"), "r"), OutcomeUnknown)
    assert not isinstance(failure("p", apsw.IOError("x")), OutcomeUnknown)
    assert not isinstance(failure("p", apsw.FullError("x"), "r"), OutcomeUnknown)


def test_the_clock_is_asked_not_the_computer(path: str) -> None:
    from nessie_cli.store.sqlite import create_sqlite

    clock = Clock()
    store = create_sqlite(path, clock=clock)
    store.put([an_object("a")])
    assert store.delete([an_object("a").id], int(clock.now)) == 0
    assert store.delete([an_object("a").id], int(clock.now) + 1) == 1
    store.close()
