"""Garbage collection: shared history is walked once, and a plan has bounded memory.

Fifty branches share the history; the plan compares a million files.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import corpus
from bench.report import Line, interleaved, ratio_of_medians
from nessie_cli.gc.mark import contents_of
from nessie_cli.gc.plan import differ, scope_of
from nessie_cli.gc.run import Run, Runs, RunSettings
from nessie_cli.gc.schemas import BASES, FINDINGS, LISTED, LIVE
from nessie_cli.model import ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository.local import LocalRepository

COMMITS = 20_000
TABLES = 200
BRANCHES = 50
ON_BRANCH = 5
ROUNDS = 3
MARK_GOAL = 1.5

FILES = 1_000_000
ORPHANS = 1_000
_PIECE = 50_000
MEMORY_GOAL = 500
"""Megabytes of the planning process; PyArrow alone takes about 100 of them."""
_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_BASE = "/lake/events"


def measure(scratch: Path) -> Iterator[Line]:
    """Measures mark and plan."""
    yield _marking(scratch)
    yield _planning(scratch)


# -- mark ----------------------------------------------------------------------------------------
def _marking(scratch: Path) -> Line:
    with (
        _history(scratch / "one.sqlite", 0) as one,
        _history(scratch / "fifty.sqlite", BRANCHES) as fifty,
    ):
        runs = Runs(scratch / "marks")
        many, single = interleaved(ROUNDS, lambda: _mark(fifty, runs), lambda: _mark(one, runs))
    made_of = (
        f"{min(many):.2f} s / {min(single):.2f} s, {COMMITS} commits, {BRANCHES} branches of"
        f" {ON_BRANCH} more"
    )
    return Line(
        f"mark of {BRANCHES} branches over shared history : of one",
        ratio_of_medians(many, single),
        "x",
        MARK_GOAL,
        made_of,
    )


def _mark(repository: LocalRepository, runs: Runs) -> None:
    settings = RunSettings(store=repository.url, reference_time=_TIME)
    contents_of(repository, settings, runs.new(settings, _TIME).marks(), _silent)


def _silent(what: str, done: int, total: int | None) -> None:
    """Ignores progress."""


def _history(path: Path, branches: int) -> LocalRepository:
    """Writes updates of some tables, one commit each, and branches at equal distances."""
    corpus.load(path, 1)
    repository, store = corpus.open_repository(path)
    keys = [ContentKey((f"t{number}",)) for number in range(TABLES)]
    puts = [
        Put(key, IcebergTable(metadata_location=f"s3://lake/{key}/0.metadata.json")) for key in keys
    ]
    ids = repository.commit("main", puts, corpus.meta("create")).added
    with corpus.without_waiting(store):
        for number in range(COMMITS):
            _update(repository, "main", keys[number % TABLES], ids, number)
            if branches and number % (COMMITS // branches) == 0:
                name = f"branch-{number}"
                repository.create_reference(
                    ReferenceType.BRANCH, name, repository.reference("main").hash
                )
                for more in range(ON_BRANCH):
                    _update(repository, name, keys[more], ids, COMMITS + number + more)
    return repository


def _update(
    repository: LocalRepository, branch: str, key: ContentKey, ids: Any, version: int
) -> None:
    table = IcebergTable(
        metadata_location=f"s3://lake/{key}/{version + 1}.metadata.json",
        snapshot_id=version,
        id=ids[key],
    )
    repository.commit(branch, [Put(key, table)], corpus.meta(f"update {version}"))


# -- plan ----------------------------------------------------------------------------------------
def _planning(scratch: Path) -> Line:
    run = Runs(scratch / "plans").new(
        RunSettings(store="memory:", reference_time=_TIME, warehouse=("/lake",)),
        _TIME + timedelta(days=9),
    )
    _lake(run)
    done = subprocess.run(
        [sys.executable, "-m", "bench.gc", str(run.folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    memory, candidates, taken = done.stdout.split()
    made_of = (
        f"{candidates} candidates of {FILES + ORPHANS} files in {float(taken):.1f} s; resident"
        " memory at its highest"
    )
    return Line(f"plan of {FILES} live files", int(memory) / 1024, "MB", MEMORY_GOAL, made_of)


def _lake(run: Run) -> None:
    """Writes the files that a mark and a listing of this many files produce."""
    marks = run.marks()
    with marks.live.writing(LIVE) as live, run.dataset("listed").writing(LISTED) as listed:
        for first in range(0, FILES, _PIECE):
            paths = [_path(number) for number in range(first, first + _PIECE)]
            live(pa.table([paths, ["data"] * _PIECE, ["an id"] * _PIECE], schema=LIVE))
            listed(_rows(paths))
        listed(_rows([f"{_BASE}/data/orphan-{number}.parquet" for number in range(ORPHANS)]))
    with marks.bases.writing(BASES) as write:
        write(pa.table([[_BASE], ["an id"], ["events"]], schema=BASES))
    with marks.findings.writing(FINDINGS):
        """Empty."""


def _path(number: int) -> str:
    return f"{_BASE}/data/day={number % 365}/part-{number:09}-6a1f0c1e-7c0f-4a53-9a59-1d2b3c4d5e6f-00001.parquet"


def _rows(paths: list[str]) -> pa.Table:
    count = len(paths)
    return pa.table([paths, paths, [1000] * count, [_TIME] * count, [_BASE] * count], schema=LISTED)


def main() -> None:
    """Plans the run in a folder, in its own process, whose memory is measured."""
    folder = Path(sys.argv[1])
    run = Runs(folder.parent).open(folder.name)
    scope = scope_of(run, run.info.settings, lambda _: None)
    (taken,) = interleaved(1, lambda: differ(run, scope, _silent))
    print(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, run.dataset("candidates").rows, taken[0]
    )


if __name__ == "__main__":
    main()
