"""Growth of the store per commit of one key: objects, indexes, reflog, partly filled pages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.report import Line, seconds
from nessie_cli.repository.local import LocalRepository

TABLES = 500
COMMITS = 20_000
GOAL = 4.0
SEED = 20_260_103


def measure(scratch: Path) -> Iterator[Line]:
    """Measures bytes of file per commit after the store was closed, in units of 1,024."""
    path = scratch / "size.sqlite"
    corpus.load(path, TABLES)
    before = _bytes(path)
    repository, _ = corpus.open_repository(path)
    with repository:
        taken = seconds(lambda: _commit_many(repository))
    grown = (_bytes(path) - before) / COMMITS
    made_of = (
        f"{grown:.0f} bytes per commit, {COMMITS:,} commits at {TABLES} tables;"
        f" {1000 * taken / COMMITS:.2f} ms each"
    )
    yield Line("store per one-key commit", grown / 1024, "KiB", GOAL, made_of)


def _commit_many(repository: LocalRepository) -> None:
    picker = random.Random(SEED)
    for version in range(1, COMMITS + 1):
        put = corpus.update(repository, "main", picker.randrange(TABLES), version)
        repository.commit("main", [put], corpus.meta(f"load number {version}"))


def _bytes(path: Path) -> int:
    """Returns the size of the file and of SQLite's files beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
