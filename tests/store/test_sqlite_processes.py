"""One SQLite store, several processes: no update is lost, writes are atomic, and a fork
works."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from nessie_cli.store.base import LEASE
from nessie_cli.store.records import Done
from nessie_cli.store.sqlite.store import create_sqlite, open_sqlite
from tests.store.samples import a_move, a_write, create, id_of, write

PREPARED = """
import os, sys
from contextlib import suppress
from threading import Event, Thread
from nessie_cli.errors import StoreUnavailable
from nessie_cli.store.records import Done
from nessie_cli.store.sqlite.store import create_sqlite, open_sqlite
from tests.store.samples import a_move, a_write, an_object, commit, create, id_of, write
path = sys.argv[1]
"""


def start(code: str, path: str, stdin: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", PREPARED + code, path]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out.split()


COUNT_UP = """
store = open_sqlite(path)
for _ in range(40):
    answer = None
    while answer != Done():
        height = len(store.reflog("main")) - 1
        answer = write(store, commit("main", str(height), str(height + 1)))
    print(height + 1)
store.close()
"""


def test_processes_that_retry_lose_no_update(path: str) -> None:
    store = create_sqlite(path)
    write(store, create("main", "0"))
    counted = sorted(
        int(n) for process in [start(COUNT_UP, path) for _ in range(4)] for n in finish(process)
    )
    assert counted == list(range(1, 161))
    assert [row.move.after for row in reversed(store.reflog())] == [
        id_of(str(n)) for n in range(161)
    ]
    assert len(list(store.scan())) == 3 * 160
    store.close()
    assert [entry.name for entry in Path(path).parent.iterdir()] == ["store.sqlite"]


WRITE_PAIRS = """
store = open_sqlite(path)
n = 0
while os.path.exists(path + ".go"):
    moves = [a_move("a", str(n), str(n + 1)), a_move("b", str(n), str(n + 1))]
    write(store, a_write([an_object(str(n), size=2000)], moves, {"n": str(n + 1), "m": str(n + 1)}))
    n += 1
store.close()
"""


def test_another_process_sees_a_write_completely_or_not_at_all(path: str) -> None:
    store = create_sqlite(path)
    write(
        store, a_write([], [a_move("a", None, "0"), a_move("b", None, "0")], {"n": "0", "m": "0"})
    )
    going = Path(path + ".go")
    going.touch()
    writer = start(WRITE_PAIRS, path)
    seen = set()
    try:
        while len(seen) < 100:
            settings = store.settings().values
            assert settings["n"] == settings["m"]
            a, b = store.references()
            assert a.target == b.target
            # Objects are committed with the reference that needs them.
            last = store.reflog("a", limit=1)[0].move
            assert last.before is None or store.get([last.before])
            seen.add(settings["n"])
    finally:
        going.unlink()
        finish(writer)
        store.close()


CREATE = """
store = create_sqlite(path)
print(write(store, a_write([an_object("root")], [a_move("main", None, "root")], {"id": str(os.getpid())})) == Done())
store.close()
"""


def test_concurrent_processes_create_one_store(path: str) -> None:
    answers = [
        word for process in [start(CREATE, path) for _ in range(5)] for word in finish(process)
    ]
    assert sorted(answers) == ["False"] * 4 + ["True"]
    store = open_sqlite(path)
    assert len(store.reflog()) == 1
    store.close()
    assert [entry.name for entry in Path(path).parent.iterdir()] == ["store.sqlite"]


CRASH = """
import apsw
from nessie_cli.store.sqlite import commit as sqlite
def die(*_):
    os._exit(0)
store = open_sqlite(path)
sqlite._apply = die
write(store, commit("main", "0", "1"))
"""


def test_a_process_that_dies_in_a_transaction_leaves_no_trace(path: str) -> None:
    store = create_sqlite(path)
    write(store, create("main", "0"))
    finish(start(CRASH, path))
    assert store.reference("main").target == id_of("0")  # type: ignore[union-attr]
    assert list(store.scan()) == []
    assert write(store, create("dev", "0")) == Done()
    store.close()


ONE_REQUEST = """
store = open_sqlite(path)
print("ready", flush=True)
sys.stdin.readline()
for n in range(50):
    print(type(write(store, commit("main", str(n), str(n + 1), f"request {n}"))).__name__)
store.close()
"""


def test_a_request_id_of_two_processes_is_committed_once(path: str) -> None:
    store = create_sqlite(path)
    write(store, create("main", "0"))
    both = [start(ONE_REQUEST, path, stdin=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [finish(process) for process in both]
    # Each process continues from the reference that the other one has left.
    assert [sorted(pair) for pair in zip(*outcomes, strict=True)] == [["Done", "Repeated"]] * 50
    assert [row.move.after for row in reversed(store.reflog())] == [
        id_of(str(n)) for n in range(51)
    ]
    store.close()


DIE_WITH_LEASE = """
store = open_sqlite(path)
lease = store.lease("main")
lease.__enter__()
print("held", flush=True)
os._exit(0)
"""


def test_the_lease_of_a_dead_process_expires(path: str) -> None:
    store = create_sqlite(path)
    finish(start(DIE_WITH_LEASE, path))
    begun = time.monotonic()
    with store.lease("main") as token:
        assert store.commit([create("main")], lease=token) == [Done()]
    assert LEASE / 4 < time.monotonic() - begun < LEASE * 2
    store.close()


FAIR = """
store = open_sqlite(path)
for _ in range(20):
    with store.lease("main") as token:
        at = len(store.reflog("main")) - 1
        print(type(store.commit([commit("main", str(at), str(at + 1))], lease=token)[0]).__name__)
store.close()
"""


def test_processes_that_take_leases_never_lose(path: str) -> None:
    store = create_sqlite(path)
    write(store, create("main", "0"))
    answers = [
        word for process in [start(FAIR, path) for _ in range(3)] for word in finish(process)
    ]
    assert answers == ["Done"] * 60
    store.close()


FORK_WHILE_OPEN = """
store = create_sqlite(path)
write(store, create("main", "0"))
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
if not child:
    write(store, commit("main", "0", "1"))
    os.write(to_parent[1], b"x")
    os.read(to_child[0], 1)
    # The parent has closed the store meanwhile. With inherited locks SQLite would have removed the
    # log file under this process.
    write(store, commit("main", "1", "2"))
    os._exit(0)
os.read(to_parent[0], 1)
assert store.reference("main").target == id_of("1")
store.close()
os.write(to_child[1], b"x")
assert os.waitpid(child, 0)[1] == 0
print(open_sqlite(path).reference("main").target == id_of("2"))
"""

FORK_IN_A_TRANSACTION = """
from nessie_cli.store.sqlite import commit as sqlite
store = create_sqlite(path)
write(store, create("main", "0"))
real = sqlite._apply
def fork(*given):
    child = os.fork()
    if not child:
        try:
            open_sqlite(path)
        except StoreUnavailable as error:
            print("forked inside a transaction" in str(error), flush=True)
        try:
            create_sqlite(path + ".other").close()
            store.close()
        finally:
            sys.exit(0)  # the interpreter's end must not close what was inherited
    assert os.waitpid(child, 0)[1] == 0
    real(*given)
sqlite._apply = fork
write(store, commit("main", "0", "1"))
sqlite._apply = real
print(open_sqlite(path).reference("main").target == id_of("1"))
"""

FORK_WITH_THREADS = """
store = create_sqlite(path)
write(store, create("main", "0"))
over = Event()
failed = []
def work():
    try:
        while not over.is_set():
            store.references()
    except BaseException as error:
        failed.append(error)
threads = [Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
# What fails around a fork is raised to nobody.
sys.unraisablehook = lambda fault: os._exit(1)
ended = []
for _ in range(100):
    child = os.fork()
    if not child:
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
over.set()
for thread in threads: thread.join()
print(failed or ended == [0] * 100)
"""


@pytest.mark.parametrize(
    ("code", "answers"), [(FORK_WHILE_OPEN, 1), (FORK_IN_A_TRANSACTION, 2), (FORK_WITH_THREADS, 1)]
)
def test_a_store_works_after_a_fork(path: str, code: str, answers: int) -> None:
    assert finish(start(code, path)) == ["True"] * answers
    store = open_sqlite(path)
    assert write(store, create("dev", "0")) == Done()
    store.close()
