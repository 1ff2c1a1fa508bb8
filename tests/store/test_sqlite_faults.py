"""Faults of a SQLite store: an error before and after every statement, a full disk, a
failing disk, a lock that is held too long."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from nessie_cli.errors import NessieError, StoreUnavailable
from nessie_cli.store.base import Store
from nessie_cli.store.records import Done, StoredObject, StoredReference, Write
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite
from tests.store.samples import (
    Clock,
    a_move,
    a_write,
    an_object,
    commit,
    delete,
    id_of,
    stale,
    write,
)


class Fault(Exception):
    """A simulated error."""


def contents(store: Store) -> object:
    objects = sorted(store.scan(), key=lambda o: o.id)
    return objects, store.references(), store.reflog(), store.settings()


def everything(n: int) -> Write:
    """Returns a write that uses every kind of statement."""
    moves = [
        a_move("main", str(n), str(n + 1), request_id=f"request {n}"),
        a_move("new", None, "1", request_id=f"request {n}"),
        a_move("new", "1", None, request_id=f"request {n}"),
        a_move(f"branch {n}", None, "1", request_id=f"request {n}"),
    ]
    objects = [an_object(f"object {n}"), an_object(f"big {n}", size=3000)]
    settings = {"a": str(n), "b": None, f"c{n}": "1"}
    required = [id_of("1"), id_of("value 1")]
    return a_write(
        objects, moves, settings, required=required, settings_version=0, request_id=f"request {n}"
    )


class Faults:
    """Counts the statements of the connections opened while it is active, and fails at (or from)
    one of them."""

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


def write_one(store: SQLiteStore) -> None:
    store.commit([everything(1)])


def write_three(store: SQLiteStore) -> None:
    store.commit([commit("main", "1", "0"), commit("main", "0", "1"), everything(1)])


def write_under_a_lease(store: SQLiteStore) -> None:
    with store.lease("main") as token:
        store.commit([everything(1)], lease=token)


def put_some(store: SQLiteStore) -> None:
    store.put([an_object("put")])


def delete_some(store: SQLiteStore) -> None:
    delete(store, [id_of("value 1")], 2_000_000_000)


@pytest.mark.parametrize(
    "lasting", [False, True], ids=["one fault", "and every statement after it, ROLLBACK too"]
)
@pytest.mark.parametrize(
    "act", [write_one, write_three, write_under_a_lease, put_some, delete_some]
)
def test_a_fault_before_a_statement_leaves_no_partial_write(
    filled: str, act: Callable[[SQLiteStore], None], lasting: bool
) -> None:
    faults = Faults()
    faults.lasting = lasting
    with hooked(faults):
        store = open_sqlite(filled)
        before = contents(store)
        for at in range(1, 1000):
            faults.count, faults.at, faults.armed = 0, at, True
            failed = False
            try:
                act(store)
            except Fault:
                failed = True
            faults.armed = False
            other = open_sqlite(filled)
            after = contents(other)
            assert contents(store) == after
            # The failed writer must not hold a lock or a lease for long.
            other.put([])
            release_leases(filled)
            other.close()
            if after != before:
                break
            assert failed
        store.close()
    assert at > 3
    assert complete(after)


def complete(found: object) -> bool:
    """Returns whether exactly one of the acts above is complete."""
    objects, references, reflog, settings = found  # type: ignore[misc]
    if not settings.values:
        return len(objects) in (2, 4)
    return (
        len(objects) >= 5
        and len(references) == 2
        and len(reflog) >= 6
        and settings.values == {"a": "1", "c1": "1"}
    )


def release_leases(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute("DELETE FROM leases").fetchall()
    connection.close()


def test_a_fault_after_the_commit_leaves_the_whole_write(filled: str) -> None:
    """The answer is lost, but not the write: the request id finds it."""

    def fail(*_: object) -> int:
        raise Fault

    connections: list[apsw.Connection] = []
    with hooked(connections.append):
        store = open_sqlite(filled)
        connections[0].set_wal_hook(fail)
        with pytest.raises((Fault, NessieError)):
            write(store, everything(1))
        assert store.request("request 1")
        assert store.get([id_of("object 1")])
        assert store.settings().values == {"a": "1", "c1": "1"}
        store.close()


@pytest.mark.parametrize("denied", ["refs", "reflog", "objects", "settings", "requests"])
def test_a_statement_that_sqlite_refuses_writes_nothing(filled: str, denied: str) -> None:
    def authorize(action: int, table: str | None, *_: object) -> int:
        return (
            apsw.SQLITE_DENY if action == apsw.SQLITE_INSERT and table == denied else apsw.SQLITE_OK
        )

    def hook(connection: apsw.Connection) -> None:
        connection.set_authorizer(authorize)

    with hooked(hook):
        store = open_sqlite(filled)
        before = contents(store)
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite: "):
            write(store, everything(1))
        assert contents(store) == before
        store.close()


# -- full disk --


@contextmanager
def room_for(pages: int) -> Iterator[None]:
    """Limits the file's size; SQLite then reports the same error as for a full disk."""

    def limit(connection: apsw.Connection) -> None:
        used = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {used + pages}").fetchall()

    with hooked(limit):
        yield


def big(n: int) -> StoredObject:
    from random import Random

    return StoredObject(id_of(f"big {n}"), 1, Random(n).randbytes(9000))


def test_a_full_disk_writes_nothing_and_is_reported(filled: str) -> None:
    with room_for(5):
        store = open_sqlite(filled)
        before = contents(store)
        with pytest.raises(
            StoreUnavailable,
            match=r"store\.sqlite: the disk is full, nothing was written; free some space and try again",
        ) as caught:
            write(
                store, a_write([big(n) for n in range(5)], [a_move("main", "1", "2")], {"a": "1"})
            )
        assert "\n" not in str(caught.value)
        assert contents(store) == before
        assert write(store, commit("main", "1", "2")) == Done()  # a small write fits
        store.close()
    store = open_sqlite(filled)
    assert write(store, a_write([big(n) for n in range(5)], [a_move("main", "2", "3")])) == Done()
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip(
            "a file system cannot be mounted here; test_a_full_disk_writes_nothing_and_is_reported"
            " tests the same by SQLite's limit"
        )
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_real_full_disk_loses_nothing(small_disk: Path, filled: str, tmp_path: Path) -> None:
    path = shutil.copy(filled, small_disk)
    store = open_sqlite(path)
    for n in range(1, 1000):
        before = contents(store)
        try:
            write(store, a_write([big(n)], [a_move("main", str(n), str(n + 1))]))
        except StoreUnavailable as error:
            assert "the disk is full, nothing was written" in str(error)  # noqa: PT017
            break
    assert n > 3
    assert contents(store) == before
    store.close()
    # With space again, everything acknowledged exists and writes work. (Without space, SQLite
    # cannot empty its log file.)
    roomy = open_sqlite(str(shutil.copytree(small_disk, tmp_path / "roomy") / "store.sqlite"))
    assert contents(roomy) == before
    assert write(roomy, a_write([big(n)], [a_move("main", str(n), str(n + 1))])) == Done()
    roomy.close()


def test_a_completely_full_disk_is_reported_with_a_hint(small_disk: Path, filled: str) -> None:
    path = shutil.copy(filled, small_disk)
    with suppress(OSError), (small_disk / "fill").open("wb", buffering=0) as fill:
        while fill.write(bytes(1000)):
            pass
    with pytest.raises(
        StoreUnavailable, match=r"store\.sqlite: the disk is full.*free some space.*and try again$"
    ):
        write(open_sqlite(path), commit("main", "1", "2"))
    (small_disk / "fill").unlink()
    store = open_sqlite(path)
    assert write(store, commit("main", "1", "2")) == Done()
    store.close()


# -- failing disk, locks --

FAILING = """
import os, resource, signal, sys
from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.sqlite.store import open_sqlite
from tests.store.samples import commit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, room = sys.argv[1], int(sys.argv[2])
store = open_sqlite(path)
for n in range(1, 6):
    store.commit([commit("main", str(n), str(n + 1))])
limit = os.path.getsize(path + "-wal") + room
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    store.commit([commit("main", "6", "7", "the request")])
except StoreUnavailable as error:
    print(getattr(error, "request_id", "nothing was written"), store.request("the request"), error, sep="|")
store.close()
"""


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (
            100,
            (
                "the request|None|store {0}: the disk failed during a commit, and whether it"
                " happened cannot be found out"
            ),
        ),
        (
            3 * 4120,
            "nothing was written|None|store {0}: the disk is full or has failed; free some space",
        ),
    ],
)
def test_a_disk_failure_during_the_commit_is_resolved(
    filled: str, room: int, expected: str
) -> None:
    """A limit of the file size makes the operating system refuse the bytes of the log file.

    If a smaller transaction still fits, the store finds out that nothing was written.
    """
    done = subprocess.run(
        [sys.executable, "-c", FAILING, filled, str(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(expected.format(filled))
    store = open_sqlite(filled)
    assert store.reference("main").target == id_of("6")  # type: ignore[union-attr]
    assert [row.move.after for row in store.reflog()] == [id_of(str(n)) for n in range(6, -1, -1)]
    assert store.commit([commit("main", "6", "7", "the request")]) == [Done()]
    store.close()


@pytest.mark.parametrize("digest", [b"digest", b""], ids=["chosen id", "id that nobody chose"])
def test_a_commit_that_is_durable_despite_a_disk_failure_is_done(
    filled: str, digest: bytes
) -> None:
    """The error occurs once, after the log file is complete."""
    left = [1]

    def fail(*_: object) -> int:
        if left:
            left.pop()
            raise apsw.IOError("disk I/O error")
        return apsw.SQLITE_OK

    connections: list[apsw.Connection] = []
    with hooked(connections.append):
        store = open_sqlite(filled)
        connections[0].set_wal_hook(fail)
        first, late = commit("main", "1", "2", "the request"), commit("main", "1", "3")
        first = structs.replace(first, request=structs.replace(first.request, digest=digest))
        outcomes = store.commit([first, late])
        assert outcomes == [Done(), stale("main", StoredReference("main", "BRANCH", id_of("2")))]
        assert not left
        assert store.request("the request") == (first.request if digest else None)
        store.close()


def test_a_lock_held_too_long_is_reported_and_reads_continue(filled: str) -> None:
    holder, store = apsw.Connection(filled), open_sqlite(filled, patience=0.05)
    with holder:
        holder.execute("DELETE FROM leases")
        for attempt in (
            lambda: write(store, commit("main", "1", "3")),
            lambda: store.put([an_object("x")]),
            store.lease("main").__enter__,
        ):
            with pytest.raises(
                StoreUnavailable,
                match=r"store\.sqlite: another process has been writing to it for too long; try again",
            ):
                attempt()
        assert store.reference("main").target == id_of("1")  # type: ignore[union-attr]
    assert write(store, commit("main", "1", "2")) == Done()
    holder.close()
    store.close()


def test_using_a_closed_store_is_reported(filled: str) -> None:
    store = open_sqlite(filled)
    store.close()
    for attempt in (
        store.references,
        lambda: write(store, commit("main", "1", "2")),
        lambda: store.get([id_of("1")]),
    ):
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite has been closed"):
            attempt()


def test_the_store_uses_the_given_clock(path: str) -> None:
    from nessie_cli.store.sqlite.store import create_sqlite

    clock = Clock()
    store = create_sqlite(path, clock=clock)
    store.put([an_object("a"), an_object("newest")])
    assert delete(store, [an_object("a").id], int(clock.now)) == 0
    assert delete(store, [an_object("a").id], int(clock.now) + 1) == 1
    store.close()
