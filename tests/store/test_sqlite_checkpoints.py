"""Checkpoints beside writers: the log file of a SQLite store stays bounded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, active_count
from threading import enumerate as threads_alive

import apsw
import pytest

from nessie_cli.store.records import StoredObject
from nessie_cli.store.sqlite.session import LOG_PAGES
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite
from tests.store.samples import id_of

LOG = LOG_PAGES * 4096
SIZE = 200_000
"""The bytes of one object: about eighty of them are a log that is due for a checkpoint."""


@pytest.fixture
def store(filled: str) -> Iterator[SQLiteStore]:
    store = open_sqlite(filled)
    yield store
    store.close()


def log_size(path: str) -> int:
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0


def put(store: SQLiteStore, first: int, count: int) -> None:
    """Writes objects, each in a transaction of its own."""
    for number in range(first, first + count):
        store.put([StoredObject(id_of(f"large {number}"), 1, os.urandom(SIZE))])


def wait_for_checkpoint() -> None:
    for thread in threads_alive():
        if thread.name == "checkpoint":
            thread.join()


def test_the_log_stays_bounded_while_a_writer_never_pauses(store: SQLiteStore, filled: str) -> None:
    put(store, 0, 500)
    assert log_size(filled) < 3 * LOG
    assert Path(filled).stat().st_size > 2 * LOG


def test_the_log_stays_bounded_beside_several_writers(store: SQLiteStore, filled: str) -> None:
    other = open_sqlite(filled)
    threads = [
        Thread(target=put, args=(each, 200 * number, 200))
        for number, each in enumerate([store, other])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert log_size(filled) < 4 * LOG


def test_a_long_reader_stops_no_writer_and_afterwards_the_log_is_used_again(
    store: SQLiteStore, filled: str
) -> None:
    with store.dump() as dump:
        put(store, 0, 200)
        before = dump.counts.objects
        assert sum(1 for _ in dump.objects()) == before
    longest = log_size(filled)
    put(store, 200, 300)
    assert log_size(filled) < longest + 2 * LOG
    assert store.count() == before + 500


def test_a_checkpoint_loses_nothing_that_other_programs_read(
    store: SQLiteStore, filled: str
) -> None:
    put(store, 0, 200)
    wait_for_checkpoint()
    other = apsw.Connection(filled, flags=apsw.SQLITE_OPEN_READONLY)
    assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    [(count,)] = other.execute("SELECT count(*) FROM objects WHERE length(packed) > ?", (SIZE,))
    other.close()
    assert count == 200


def test_the_last_close_removes_the_log(store: SQLiteStore, filled: str) -> None:
    put(store, 0, 100)
    store.close()
    assert log_size(filled) == 0
    assert "checkpoint" not in [thread.name for thread in threads_alive()]


def test_short_commits_start_no_thread(store: SQLiteStore) -> None:
    before = active_count()
    for number in range(50):
        store.put([StoredObject(id_of(f"small {number}"), 1, b"small")])
    assert active_count() == before


ABANDONED = """import os, sys
from nessie_cli.store.records import StoredObject
from nessie_cli.store.sqlite.store import open_sqlite
store = open_sqlite(sys.argv[1])
for number in range(300):
    store.put([StoredObject(os.urandom(32), 1, os.urandom(200_000))])
print("done", flush=True)
if sys.argv[2] == "killed":
    os._exit(1)
"""


@pytest.mark.parametrize("end", ["killed", "not closed"])
def test_a_process_that_never_closes_its_store_leaves_a_bounded_log(filled: str, end: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", ABANDONED, filled, end], capture_output=True, text=True, check=False
    )
    assert process.stdout == "done\n"
    assert process.stderr == ""
    assert log_size(filled) < 3 * LOG
    store = open_sqlite(filled)
    assert list(store.verify_file()) == []
    store.close()
    assert log_size(filled) == 0


FORKED = """import os, sys, warnings
# From 3.12 on, Python warns about a fork beside any thread.
warnings.simplefilter("ignore", DeprecationWarning)
from nessie_cli.store.records import StoredObject
from nessie_cli.store.sqlite.store import open_sqlite
store = open_sqlite(sys.argv[1])
def put(count):
    for _ in range(count):
        store.put([StoredObject(os.urandom(32), 1, os.urandom(200_000))])
children = []
for _ in range(4):
    put(85)  # the last ones begin a checkpoint
    child = os.fork()
    if not child:
        put(170)
        store.close()
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], store.count())
store.close()
"""


def test_a_fork_during_a_checkpoint_leaves_the_store_usable_in_both_processes(filled: str) -> None:
    before = open_sqlite(filled)
    objects = before.count()
    before.close()
    process = subprocess.run(
        [sys.executable, "-c", FORKED, filled], capture_output=True, text=True, check=False
    )
    assert process.stderr == ""
    assert process.stdout == f"[0, 0, 0, 0] {objects + 4 * (85 + 170)}\n"
    assert log_size(filled) == 0
