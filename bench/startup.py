"""What a command costs beside Python's own start: a prompt, a completion and a CI loop call `nessie` thousands of times."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import corpus
from bench.report import MILLI, Line, interleaved

ROUNDS = 31
COMMITS = 100
TABLES = 500
GOALS = {"nessie log -n 20 --json": 7.0, "nessie --version": 3.0}


def measure(scratch: Path) -> Iterator[Line]:
    """The ratios to `python -c pass`, of the fastest of the interleaved runs: what disturbs a run only ever makes it slower."""
    folder = _workspace(scratch / "startup")
    script = str(Path(sys.executable).with_name("nessie"))
    commands = {line: [script, *line.split()[1:]] for line in GOALS}
    bare, *ours = interleaved(ROUNDS, _run([sys.executable, "-c", "pass"], folder), *(_run(command, folder) for command in commands.values()))
    for (line, goal), times in zip(GOALS.items(), ours, strict=True):
        made_of = f"{MILLI * min(times):.1f} ms / {MILLI * min(bare):.1f} ms, fastest of {ROUNDS} interleaved runs"
        yield Line(f"{line} : python -c pass", min(times) / min(bare), "x", goal, made_of)


def _run(command: list[str], folder: Path) -> Callable[[], object]:
    return lambda: subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _workspace(folder: Path) -> Path:
    """A workspace with some hundred tables and a history."""
    folder.mkdir()
    script = str(Path(sys.executable).with_name("nessie"))
    subprocess.run([script, "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    repository, store = corpus.open_repository(folder / ".nessie" / "store.sqlite")
    with repository, store.exclusive():
        repository.commit("main", corpus.first_load(TABLES), corpus.meta("first load"))
        for number in range(COMMITS):
            repository.commit("main", [corpus.update(repository, "main", number, 1)], corpus.meta(f"load of day {number}"))
    return folder
