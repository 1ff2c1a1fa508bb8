"""Plans that commit together on SQLite: there is one COMMIT for all.

If it fails, no plan is committed, and each gets the reason.
"""

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

from nessie_cli.errors import StoreUnavailable
from nessie_cli.model import ContentKey, IcebergTable, Put
from nessie_cli.repository.opening import connect, create
from tests.repository.plans import group
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
def opened(url: str) -> Iterator[Catalog]:
    with connect(url) as repository:
        yield Catalog(repository)


def large(name: str) -> Put:
    """Returns a put of more than a few pages that do not compress."""
    text = Random(1).randbytes(200_000).hex()
    return Put(ContentKey((name,)), IcebergTable(metadata_location=text))


def test_a_group_is_one_transaction(url: str) -> None:
    statements: list[str] = []

    def trace(_: object, statement: str, __: object) -> bool:
        statements.append(statement.split(maxsplit=1)[0])
        return True

    with hooked(lambda connection: connection.set_exec_trace(trace)), opened(url) as catalog:
        statements.clear()
        group(catalog, *[lambda c, n=n: c.commit("main", put(f"k{n}", table(n))) for n in range(5)])  # type: ignore[misc]
        assert [s for s in statements if s in ("BEGIN", "COMMIT", "ROLLBACK")] == [
            "BEGIN",
            "COMMIT",
        ]
        assert len(catalog.log()) == 6


def test_a_full_disk_fails_the_whole_group(url: str) -> None:
    def limit(connection: apsw.Connection) -> None:
        used = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {used + 24}").fetchall()

    with hooked(limit), opened(url) as catalog:
        before = catalog.everything()
        answers = group(
            catalog,
            lambda c: c.commit("main", put("b", table(1))),
            lambda c: c.commit("main", large("c")),
            lambda c: c.commit("main", large("d")),
        )
        # SQLite may roll back the statement or the transaction; either way, the answers must match
        # the state.
        done = [answer for answer in answers if isinstance(answer, str)]
        assert all(isinstance(answer, StoreUnavailable) for answer in answers[1:])
        assert catalog.hashes()[: len(done)] == done
        if not done:
            assert catalog.everything() == before
        assert isinstance(catalog.commit("main", put("e", table(1))), str)


def test_a_failed_commit_is_the_answer_of_every_plan(url: str) -> None:
    def refuse(connection: apsw.Connection) -> None:
        connection.set_commit_hook(lambda: True)

    with opened(url) as catalog:
        before = catalog.everything()
    with hooked(refuse), opened(url) as catalog:
        answers = group(
            catalog, lambda c: c.write("main", {"b": 1}), Catalog.head, lambda c: c.branch("dev")
        )
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    with opened(url) as catalog:
        assert catalog.everything() == before


FAILING = """
import resource, signal, sys
from nessie_cli import CommitMeta, ContentKey, IcebergTable, Put, connect
from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.repository.group_commit import planned
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
repository = connect(sys.argv[1])

def commit(number):
    key = ContentKey((f"t{number}",))
    change = Commit("main", [Put(key, IcebergTable(metadata_location="m"))], CommitMeta(str(number)))
    submission = ChangeSubmission(str(number))
    return lambda at: planned(at.draft(change, submission))

resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))
for first in range(0, 1000, 3):
    answers = repository.commit_all([commit(n) for n in range(first, first + 3)])
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    if failed:
        print(first, *(isinstance(error, StoreUnavailable) for error in failed))
        print(*(repository.find_request(str(first + n)) for n in range(3)))
        break
repository.close()
"""


def test_a_disk_failure_during_the_commit_of_a_group_writes_nothing(
    url: str,
) -> None:
    """A limit of the file size makes the operating system refuse the bytes of the log file."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING, url], capture_output=True, text=True, check=True
    )
    errors, found = done.stdout.splitlines()
    first = int(errors.split()[0])
    assert errors.split()[1:] == ["True"] * 3
    assert found == "None None None"
    with opened(url) as catalog:
        assert [entry.meta.message for entry in reversed(catalog.log())][1:] == [
            str(n) for n in range(first)
        ]
