"""The cost of a command beside Python's own start-up.

A prompt, a completion or a CI loop runs `nessie` thousands of times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.commands import How, Measured, ratios, workspace
from bench.report import Line

COMMITS = 100
TABLES = 500
LINES = {
    "nessie log -n 20 --json": Measured(("log", "-n", "20", "--json"), 8.0),
    "nessie --version": Measured(("--version",), 3.0),
}


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns the ratios to `python -c pass`."""
    return ratios(workspace_with_tables(scratch / "startup"), LINES, how)


def workspace_with_tables(folder: Path) -> Path:
    """Creates a workspace with some hundred tables and a history."""
    if folder.exists():
        return folder
    repository, store = corpus.open_repository(workspace(folder))
    with repository, corpus.without_waiting(store):
        repository.commit("main", corpus.first_load(TABLES), corpus.meta("first load"))
        for number in range(COMMITS):
            repository.commit(
                "main",
                [corpus.update(repository, "main", number, 1)],
                corpus.meta(f"load of day {number}"),
            )
    return folder
