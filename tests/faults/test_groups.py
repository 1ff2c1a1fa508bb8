"""Calls made durable together on SQLite: one COMMIT for all; when it fails nobody has an answer, and everybody hears why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.repository.base import Grouping
from nessie_cli.repository.context import Context
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import connect, create
from nessie_cli.store.base import Held, Store
from nessie_cli.store.opening import open_store
from tests.repository.vocabulary import Catalog, put, table


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = str(tmp_path / "store.sqlite")
    with create(path) as repository:
        Catalog(repository).write("main", {"a": 0})
    return path


@contextmanager
def hooked(hook: Any) -> Iterator[None]:
    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


@contextmanager
def opened(url: str) -> Iterator[tuple[Catalog, Grouping]]:
    with connect(url) as repository:
        assert isinstance(repository, Grouping)
        yield Catalog(repository), repository


def large(name: str) -> Put:
    """A put of more than a few pages that do not compress."""
    text = Random(1).randbytes(200_000).hex()
    return Put(ContentKey((name,)), IcebergTable(metadata_location=text))


def test_a_group_is_one_transaction(url: str) -> None:
    statements: list[str] = []

    def trace(_: object, statement: str, __: object) -> bool:
        statements.append(statement.split(maxsplit=1)[0])
        return True

    with hooked(lambda connection: connection.set_exec_trace(trace)), opened(url) as (catalog, repository):
        statements.clear()
        repository.together([lambda n=n: catalog.commit("main", put(f"k{n}", table(n))) for n in range(5)])  # type: ignore[misc]
        assert [s for s in statements if s in ("BEGIN", "COMMIT", "ROLLBACK")] == ["BEGIN", "COMMIT"]
        assert len(catalog.log()) == 6


def test_a_full_disk_fails_the_whole_group_and_nothing_is_written(url: str) -> None:
    def limit(connection: apsw.Connection) -> None:
        used = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {used + 24}").fetchall()

    with hooked(limit), opened(url) as (catalog, repository):
        before = catalog.everything()
        answers = repository.together(
            [
                lambda: catalog.commit("main", put("b", table(1))),
                lambda: catalog.commit("main", large("c")),
                lambda: catalog.commit("main", large("d")),
            ]
        )
        # SQLite may undo the one statement or the whole transaction; either way what is answered is what is there.
        done = [answer for answer in answers if isinstance(answer, str)]
        assert all(isinstance(answer, StoreUnavailable) for answer in answers[1:])
        assert catalog.hashes()[: len(done)] == done
        if not done:
            assert catalog.everything() == before
        assert isinstance(catalog.commit("main", put("e", table(1))), str)


def test_a_commit_that_fails_is_told_to_every_call(url: str) -> None:
    def refuse(connection: apsw.Connection) -> None:
        connection.set_commit_hook(lambda: True)

    with opened(url) as (catalog, repository):
        before = catalog.everything()
    with hooked(refuse), opened(url) as (catalog, repository):
        answers = repository.together([lambda: catalog.write("main", {"b": 1}), catalog.head, lambda: catalog.branch("dev")])
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    with opened(url) as (catalog, repository):
        assert catalog.everything() == before


FAILING = """
import resource, signal, sys
from nessie_cli import CommitMeta, ContentKey, IcebergTable, OutcomeUnknown, Put, connect
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
repository = connect(sys.argv[1])

def commit(number):
    key = ContentKey((f"t{number}",))
    return repository.commit("main", [Put(key, IcebergTable(metadata_location="m"))], CommitMeta(str(number)), request_id=str(number))

resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))
for first in range(0, 1000, 3):
    answers = repository.together([lambda n=n: commit(n) for n in range(first, first + 3)])
    unknown = [answer.request_id for answer in answers if isinstance(answer, OutcomeUnknown)]
    if unknown:
        print(first, *unknown)
        print(*(repository.find_request(request) for request in unknown))
        break
repository.close()
"""


def test_a_disk_that_fails_during_the_commit_of_a_group_leaves_each_its_own_request_to_ask_for(url: str) -> None:
    """A limit of the file size makes the operating system refuse the bytes of the log file."""
    done = subprocess.run([sys.executable, "-c", FAILING, url], capture_output=True, text=True, check=True)
    requests, found = done.stdout.splitlines()
    first = int(requests.split()[0])
    assert requests.split()[1:] == [str(first + n) for n in range(3)]
    assert found == "None None None"
    with opened(url) as (catalog, _):
        assert [entry.meta.message for entry in reversed(catalog.log())][1:] == [str(n) for n in range(first)]


class LosesAnswers:
    """A store before a real one: everything is written, and then the answer is lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._inside = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def exclusive(self) -> Iterator[Held]:
        outermost, self._inside = not self._inside, True
        with self._store.exclusive() as held:
            yield held
        if outermost:
            self._inside = False
            raise OutcomeUnknown("the line was cut", "whatever")


def test_a_group_whose_answer_was_lost_is_looked_for(url: str) -> None:
    repository = LocalRepository(LosesAnswers(open_store(url)), Context("", lambda: 0, bytes))
    with repository:
        catalog = Catalog(repository)
        answers = repository.together(
            [lambda n=n: repository.commit("main", [put(f"k{n}", table(n))], CommitMeta("m"), request_id=f"r{n}") for n in range(2)]  # type: ignore[misc]
        )
        assert [answer.reference.hash for answer in reversed(answers) if not isinstance(answer, Exception)] == catalog.hashes()[:2]


def test_a_group_whose_answer_was_lost_is_looked_for_by_a_call_that_was_kept(url: str) -> None:
    """The last call has written too, but that was undone: its request is not in the store."""
    repository = LocalRepository(LosesAnswers(open_store(url)), Context("", lambda: 0, bytes))

    def fails() -> None:
        repository.commit("main", [put("lost", table(9))], CommitMeta("m"), request_id="undone")
        raise ZeroDivisionError

    with repository:
        catalog = Catalog(repository)
        kept, failed, read = repository.together(
            [lambda: repository.commit("main", [put("k", table(1))], CommitMeta("m"), request_id="kept").reference.hash, fails, catalog.numbers]
        )
        assert isinstance(failed, ZeroDivisionError)
        assert kept == catalog.hashes()[0]
        assert isinstance(read, dict)
        assert "lost" not in read
