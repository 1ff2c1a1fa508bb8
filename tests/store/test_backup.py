"""Backups of real repositories, and loading them: between all kinds of stores, during
writes, after kills, with damage."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import apsw
import psycopg
import pytest
from msgspec import structs

from nessie_cli import CommitMeta, ContentKey, IcebergTable, Put, Repository, connect, create
from nessie_cli.errors import (
    DamagedObject,
    FileExists,
    FileNotFound,
    InvalidInput,
    StoreNotEmpty,
    StoreNotFound,
    StoreUnavailable,
)
from nessie_cli.model import Delete, ReferenceType
from nessie_cli.store.backup import back_up, load_backup
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.records import StoredObject
from tests.store.contract_dump import contents
from tests.store.postgres_server import new_url, shared_server
from tests.store.samples import a_move, a_write, id_of, write

pytestmark = pytest.mark.slow

KINDS = ("sqlite", "postgres")


class Places:
    """URLs without a store."""

    def __init__(self, folder: Path, postgres: Iterator[str]) -> None:
        self._folder = folder
        self._postgres = postgres
        self._count = 0

    def url(self, kind: str) -> str:
        self._count += 1
        return (
            next(self._postgres)
            if kind == "postgres"
            else f"sqlite:///{self._folder}/store{self._count}.sqlite"
        )

    def file(self, name: str = "lake.backup") -> str:
        return str(self._folder / name)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    def urls() -> Iterator[str]:
        while True:
            with new_url() as url:
                yield url

    postgres = urls()
    yield Places(tmp_path, postgres)
    postgres.close()  # type: ignore[attr-defined]


def put(name: str, number: int) -> Put:
    return Put(
        ContentKey((name,)), IcebergTable(metadata_location=f"s3://lake/{name}/{number}.json")
    )


def commit(repository: Repository, branch: str, message: str, *operations: Any) -> str:
    return repository.commit(
        branch, operations, CommitMeta(message), request_id=f"request {message}"
    ).reference.hash


def make(url: str) -> None:
    """Creates a repository with merges, tags, a deleted branch, settings, and more tables than
    fit into one node."""
    with create(url, default_branch="trunk", who="Ann") as repository:
        commit(repository, "trunk", "many", *[put(f"table {n}", n) for n in range(500)])
        for name in ("dev", "gone"):
            repository.create_reference(
                ReferenceType.BRANCH, name, repository.reference("trunk").hash
            )
            head = commit(repository, name, f"on {name}", put(f"only {name}", 1))
        repository.delete_reference("gone", expected_hash=head)
        commit(repository, "trunk", "drop", Delete(ContentKey(("table 7",))))
        repository.merge("dev", "trunk")
        repository.create_reference(ReferenceType.TAG, "v1", repository.reference("trunk").hash)
        repository.put_setting("protect.v1", "no-delete")


def state(url: str) -> dict[str, Any]:
    """Returns everything that users see, and checks that `fsck` finds nothing."""
    with connect(url) as repository:
        assert list(repository.check()) == []
        names = [reference.name for reference in repository.references()]
        return {
            "config": repository.config(),
            "references": list(repository.references()),
            "logs": {name: list(repository.log(name, operations=True)) for name in names},
            "entries": {name: list(repository.entries(name)) for name in names},
            # Numbers differ between stores; their order is the same.
            "reflog": [
                structs.replace(entry, number=0)
                for name in (*names, "gone")
                for entry in repository.reflog(name)
            ],
        }


def raw(url: str) -> dict[str, Any]:
    with closing(open_store(url)) as store:
        return contents(store)


# -- from any store into any other --


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_backup_moves_a_repository(places: Places, source: str, target: str) -> None:
    first, second, file = places.url(source), places.url(target), places.file()
    make(first)
    counts = back_up(first, file)
    assert load_backup(file, second) == counts
    assert counts.objects > 500
    assert raw(first) == raw(file) == raw(second)
    assert state(first) == state(file) == state(second)
    assert list(Path(file).parent.glob("*.new*")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_store_accepts_commits(places: Places, kind: str) -> None:
    first, second, file = places.url("sqlite"), places.url(kind), places.file()
    make(first)
    back_up(first, file)
    create(second, default_branch="other").close()
    load_backup(file, second)
    with connect(second) as repository:
        head = commit(repository, "trunk", "next", put("table new", 2))
        assert repository.reference("trunk").hash == head
        repository.merge("trunk", "dev")
        assert list(repository.check()) == []
    with pytest.raises(StoreNotEmpty):
        load_backup(file, second)


def test_a_repeated_request_is_known_after_a_load(places: Places) -> None:
    first, second, file = places.url("sqlite"), places.url("postgres"), places.file()
    make(first)
    back_up(first, file)
    load_backup(file, second)
    with closing(open_store(first)) as one, closing(open_store(second)) as two:
        chosen = [
            row.move.request_id
            for row in one.reflog()
            if row.move.request_id.startswith("request ")
        ]
        assert len(chosen) == 4, chosen
        for id_ in chosen:
            assert one.request(id_) == two.request(id_) is not None


def test_text_that_postgres_cannot_hold_is_refused_before_anything_is_loaded(
    places: Places,
) -> None:
    first, second, file = places.url("sqlite"), places.url("postgres"), places.file()
    make(first)
    with closing(open_store(first)) as store:
        write(store, a_write(moves=[a_move("nul", None, "0", message="\0")]))
    back_up(first, file)
    create(second).close()
    before = raw(second)
    with pytest.raises(InvalidInput, match="NUL"):
        load_backup(file, second)
    assert raw(second) == before


# -- files --


def test_an_existing_file_is_not_overwritten(places: Places) -> None:
    url, file = places.url("sqlite"), places.file()
    make(url)
    Path(file).write_text("mine")
    with pytest.raises(FileExists):
        back_up(url, file)
    assert Path(file).read_text() == "mine"


def test_a_file_that_appears_meanwhile_is_not_overwritten(places: Places) -> None:
    url, file = places.url("sqlite"), places.file()
    make(url)
    with pytest.raises(FileExists):
        back_up(url, file, lambda _done, _total: Path(file).write_text("mine") and None)
    assert Path(file).read_text() == "mine"
    assert {found.name for found in Path(file).parent.iterdir()} == {"lake.backup", "store1.sqlite"}


def test_a_missing_folder_is_reported(places: Places) -> None:
    url = places.url("sqlite")
    make(url)
    with pytest.raises(StoreUnavailable, match="no folder"):
        back_up(url, places.file("nowhere/lake.backup"))


def test_a_missing_backup_creates_no_store(places: Places) -> None:
    url = places.url("sqlite")
    with pytest.raises(FileNotFound):
        load_backup(places.file(), url)
    with pytest.raises(StoreNotFound):
        open_store(url)


def test_a_backup_in_a_read_only_folder_is_loaded(places: Places) -> None:
    first, second, file = (
        places.url("sqlite"),
        places.url("sqlite"),
        places.file("only/lake.backup"),
    )
    make(first)
    Path(file).parent.mkdir()
    back_up(first, file)
    Path(file).chmod(0o400)
    Path(file).parent.chmod(0o500)
    load_backup(file, second)
    assert raw(first) == raw(second)
    Path(file).parent.chmod(0o700)


# -- during writes --


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_during_writes_shows_one_state(places: Places, kind: str) -> None:
    """Every commit that was acknowledged before the start is in it, and `fsck` finds nothing."""
    url = places.url(kind)
    create(url).close()
    acknowledged: list[str] = []
    stop, writing = Event(), Event()
    writing.set()

    def work(number: int) -> None:
        with connect(url) as repository:
            for n in range(100_000):
                writing.wait()
                if stop.is_set():
                    break
                acknowledged.append(
                    commit(repository, "main", f"{number} {n}", put(f"table {number} {n}", n))
                )

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(work, number) for number in range(3)]
        try:
            for n in range(5):
                while len(acknowledged) < 50 * (n + 1):
                    assert not any(writer.done() for writer in writers)
                before = set(acknowledged)
                back_up(url, places.file(f"{n}.backup"))
                writing.clear()
                found = state(places.file(f"{n}.backup"))
                hashes = [entry.hash for entry in found["logs"]["main"]]
                assert before <= set(hashes)
                assert [entry.after for entry in found["reflog"]][: len(hashes)] == hashes
                writing.set()
        finally:
            stop.set()
            writing.set()
        for writer in writers:
            writer.result(60)
    assert len(acknowledged) > len(before)


# -- killed --

_HALT = """
import sys, time
from nessie_cli.store import dump
from nessie_cli.store.backup import back_up, load_backup
dump._ROWS = 100

def halt(done, total):
    if done > total // 2:
        print("halted", flush=True)
        time.sleep(600)

(back_up if sys.argv[1] == "backup" else load_backup)(sys.argv[2], sys.argv[3], halt)
"""


def kill_in_the_middle(*arguments: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HALT, *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"halted\n"
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_load_leaves_the_store_empty_and_can_be_repeated(
    places: Places, kind: str
) -> None:
    first, second, file = places.url("sqlite"), places.url(kind), places.file()
    make(first)
    back_up(first, file)
    create(second).close()
    before = raw(second)
    for _ in range(2):
        kill_in_the_middle("load", file, second)
        assert raw(second) == before
        assert state(second)["reflog"]
    load_backup(file, second)
    assert raw(second) == raw(first)
    assert state(second) == state(first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_backup_leaves_no_file_of_its_name(places: Places, kind: str) -> None:
    url, file = places.url(kind), places.file()
    make(url)
    kill_in_the_middle("backup", url, file)
    assert not Path(file).exists()
    back_up(url, file)
    assert raw(file) == raw(url)


class Stopped(BaseException):
    """Simulates Ctrl-C."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_backup_leaves_no_files(places: Places, kind: str) -> None:
    url = places.url(kind)
    make(url)

    def stop(done: int, total: int | None) -> None:
        raise Stopped

    (folder := Path(places.file()).parent / "backups").mkdir()
    with pytest.raises(Stopped):
        back_up(url, str(folder / "lake.backup"), stop)
    assert list(folder.iterdir()) == []


# -- damaged --


def damage(url: str) -> bytes:
    """Changes a byte of one object; returns its id."""
    if url.startswith("sqlite:"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as file:
            [[id_]] = file.execute(
                "SELECT id FROM objects ORDER BY number LIMIT 1 OFFSET 40"
            ).fetchall()
            file.execute(
                "UPDATE objects SET packed = CAST(packed || x'00' AS BLOB) WHERE id = ?", (id_,)
            )
        return bytes(id_)
    with postgres(url) as connection:
        [[id_]] = connection.execute(
            "SELECT id FROM objects ORDER BY number LIMIT 1 OFFSET 40"
        ).fetchall()
        connection.execute("UPDATE objects SET data = data || '\\x00'::bytea WHERE id = %s", (id_,))
        return bytes(id_)


def postgres(url: str) -> psycopg.Connection[Any]:
    connection = shared_server().connect()
    connection.execute(f"SET search_path TO {url.partition('schema=')[2]}")
    return connection


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_object_stops_a_backup(places: Places, kind: str) -> None:
    url = places.url(kind)
    make(url)
    damaged = damage(url)
    (folder := Path(places.file()).parent / "backups").mkdir()
    with pytest.raises(DamagedObject, match=damaged.hex()) as caught:
        back_up(url, str(folder / "lake.backup"))
    assert caught.value.object_id == damaged.hex()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_backup_is_not_loaded(places: Places, kind: str) -> None:
    first, second, file = places.url("sqlite"), places.url(kind), places.file()
    make(first)
    back_up(first, file)
    damage(f"sqlite:///{file}")
    create(second).close()
    before = raw(second)
    with pytest.raises(DamagedObject):
        load_backup(file, second)
    assert raw(second) == before


@pytest.mark.parametrize("table", ["refs", "reflog", "requests", "settings"])
def test_a_damaged_row_stops_a_backup(places: Places, table: str) -> None:
    url, file = places.url("sqlite"), places.file()
    make(url)
    with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
        column = "digest" if table == "reflog" else "check_sum"
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} || '1' AS BLOB)")
    with pytest.raises(DamagedObject, match=table):
        back_up(url, file)
    assert not Path(file).exists()


def test_index_entries_of_missing_objects_are_left_out(places: Places) -> None:
    url, file = places.url("sqlite"), places.file()
    make(url)
    before = raw(url)
    with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
        for number in (-5, 1_000_000):
            connection.execute(
                "INSERT INTO object_index (entry, object) VALUES (x'00', ?)", (number,)
            )
    back_up(url, file)
    assert raw(file) == before


def test_a_given_up_attempt_stays_excluded_after_a_load(places: Places) -> None:
    first, second, file = places.url("sqlite"), places.url("postgres"), places.file()
    make(first)
    back_up(first, file)
    create(second).close()
    with postgres(second) as connection:
        connection.execute("INSERT INTO attempts (time, id) VALUES (1, '\\x01')")
    load_backup(file, second)
    with postgres(second) as connection:
        rows = connection.execute("SELECT id FROM attempts WHERE time = 1").fetchall()
    assert rows == [(b"\1",)]
    assert raw(second) == raw(first)


# -- memory --

_MEASURE = """
import resource, sys
from nessie_cli.store.backup import back_up, load_backup
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(back_up if sys.argv[1] == "backup" else load_backup)(sys.argv[2], sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
_UNIT = 1 if sys.platform == "darwin" else 1024


def test_memory_is_bounded(places: Places) -> None:
    """120 MB of objects and 10 MB of reflog need less than 90 MB of memory."""
    random = Random(1)
    source, target = places.url("sqlite"), places.url("postgres")
    with closing(create_store(source)) as store:
        store.put(
            StoredObject(id_of(str(n)), n % 3 + 1, random.randbytes(5000)) for n in range(24_000)
        )
        for _ in range(20):
            moves = [
                a_move(
                    "main",
                    None if n % 2 == 0 else "0",
                    "0" if n % 2 == 0 else None,
                    message="m" * 400,
                )
                for n in range(1000)
            ]
            write(store, a_write(moves=moves))
    for arguments in (
        ("backup", source, places.file("1")),
        ("load", places.file("1"), target),
        ("backup", target, places.file("2")),
    ):
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *arguments], capture_output=True, text=True, check=True
        )
        assert int(done.stdout) * _UNIT < 90_000_000, arguments
    assert Path(places.file("2")).stat().st_size > 120_000_000
