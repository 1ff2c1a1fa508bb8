"""The repository for measuring commands: 100,000 commits, 10,000 tables, 1,000 branches.

Half of the branches are merged. Commits are ten minutes apart, so that filters by time select the
same commits in every run.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import NamedTuple

from bench import corpus
from bench.commands import run, workspace
from nessie_cli.model import CommitMeta, Put, ReferenceType
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.snapshot import Context
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite

ON_BRANCH = 10
"""Commits of each branch."""
WRITERS = 20
RARE = 1000
"""One of this many commits is a backfill."""
_BLOCK = 2000
_BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
_STEP = timedelta(minutes=5)
"""Each commit reads the clock twice."""


class Size(NamedTuple):
    """The size of the repository."""

    commits: int = 100_000
    tables: int = 10_000
    branches: int = 1_000
    tags: int = 100


SMALL = Size(5_000, 500, 50, 10)
"""For development."""


def lake(scratch: Path, *, small: bool) -> Path:
    """Returns the workspace of this repository, and creates it if it does not exist."""
    folder = scratch / ("lake-small" if small else "lake")
    if not (folder / "made").exists():
        _make(folder, SMALL if small else Size())
        (folder / "made").touch()
    return folder


def moment(share: float, *, small: bool) -> str:
    """Returns the time at which this share of all commits existed."""
    size = SMALL if small else Size()
    return (_BEGUN + 2 * _STEP * int(share * size.commits)).isoformat()


def _make(folder: Path, size: Size) -> None:
    store = open_sqlite(str(workspace(folder)))
    times = count(int(_BEGUN.timestamp()) * 1_000_000, _STEP // timedelta(microseconds=1))
    repository = LocalRepository(store, Context(corpus.AUTHOR, times.__next__, os.urandom))
    with repository:
        _Writing(repository, store, size).all()
    for number in range(3):
        run(folder, "content", "delete", str(corpus.table_key(2 * number)))
        run(folder, "stash", "push", "-m", f"batch {number}")
    run(folder, "content", "delete", str(corpus.table_key(0)))
    run(folder, "config", "set", "author", corpus.AUTHOR)


class _Writing:
    """Writes the history, thousands of commits per transaction."""

    def __init__(self, repository: LocalRepository, store: SQLiteStore, size: Size) -> None:
        self._repository = repository
        self._store = store
        self._size = size
        self._numbers = count()

    def all(self) -> None:
        """Creates branches of `main` at equal distances, and merges every second one later."""
        size = self._size
        added = self._repository.commit(
            "main", corpus.first_load(size.tables), corpus.meta("first load")
        ).added
        self._ids = [added[corpus.table_key(number)] for number in range(size.tables)]
        on_main = (size.commits - size.branches * ON_BRANCH - size.branches // 2) // size.branches
        at_once = max(1, _BLOCK // (on_main + ON_BRANCH))
        for first in range(0, size.branches, at_once):
            with corpus.without_waiting(self._store):
                for number in range(first, min(first + at_once, size.branches)):
                    self._branch(number, on_main)

    def _branch(self, number: int, on_main: int) -> None:
        repository, size = self._repository, self._size
        for _ in range(on_main):
            step = next(self._numbers)
            self._update("main", 2 * (step * 7919 % (size.tables // 2)), step)
        if number % 2:
            repository.merge("main", _name(number - 1))
        head = repository.reference("main").hash
        if number % (size.branches // size.tags) == 0:
            repository.create_reference(ReferenceType.TAG, f"v{number}", head)
        repository.create_reference(ReferenceType.BRANCH, _name(number), head)
        for step in range(number * ON_BRANCH, (number + 1) * ON_BRANCH):
            self._update(_name(number), (2 * step + 1) % size.tables, step)

    def _update(self, branch: str, number: int, version: int) -> None:
        """Returns a new state of one table.

        Branches and `main` write different tables, so that merges do not conflict.
        """
        message = f"backfill of table {number}" if version % RARE == 0 else f"load {version}"
        put = Put(
            corpus.table_key(number), corpus.table(number, version + 1).with_id(self._ids[number])
        )
        self._repository.commit(
            branch, [put], CommitMeta(message, authors=(f"writer-{version % WRITERS}@example.org",))
        )


def _name(number: int) -> str:
    return f"team/feature-{number}"
