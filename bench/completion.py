"""What a keystroke of completion costs beside Python's own start, in a catalog of ten thousand tables and a thousand branches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import corpus
from bench.report import MILLI, Line, interleaved
from nessie_cli.model import ReferenceType

ROUNDS = 21
TABLES = 10_000
BRANCHES = 1_000
COMMITS = 500
GOAL, GOAL_OF_KEYS = 3.0, 6.0
KEYSTROKES = {
    "a command": ([""], GOAL),
    "an option": (["log", "--"], GOAL),
    "a branch, all of 1,000": (["switch", ""], GOAL),
    "a branch, some": (["switch", "team/feature-99"], GOAL),
    "a hash, with subjects": (["commit", "--expected-hash", ""], GOAL),
    "a namespace": (["content", "show", ""], GOAL_OF_KEYS),
    "a table, all of 999": (["content", "show", "area_0003."], GOAL_OF_KEYS),
    "a table, some": (["content", "show", "area_0003.table_00031"], GOAL_OF_KEYS),
}


def measure(scratch: Path) -> Iterator[Line]:
    """The ratios to `python -c pass`, of the fastest of the interleaved runs: what disturbs a run only ever makes it slower."""
    folder = _workspace(scratch / "completion")
    script = str(Path(sys.executable).with_name("nessie"))
    runs = [_run([script, "__complete", "--", *typed], folder) for typed, _ in KEYSTROKES.values()]
    bare, *ours = interleaved(ROUNDS, _run([sys.executable, "-c", "pass"], folder), *runs)
    for (name, (_, goal)), times in zip(KEYSTROKES.items(), ours, strict=True):
        made_of = f"{MILLI * min(times):.1f} ms / {MILLI * min(bare):.1f} ms, fastest of {ROUNDS} interleaved runs"
        yield Line(f"TAB for {name} : python -c pass", min(times) / min(bare), "x", goal, made_of)


def _run(command: list[str], folder: Path) -> Callable[[], object]:
    return lambda: subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _workspace(folder: Path) -> Path:
    folder.mkdir()
    script = str(Path(sys.executable).with_name("nessie"))
    subprocess.run([script, "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    repository, store = corpus.open_repository(folder / ".nessie" / "store.sqlite")
    with repository, store.exclusive():
        repository.commit("main", corpus.first_load(TABLES), corpus.meta("first load"))
        for number in range(COMMITS):
            repository.commit("main", [corpus.update(repository, "main", number, 1)], corpus.meta(f"load of day {number}"))
        head = repository.reference("main").hash
        for number in range(BRANCHES):
            repository.create_reference(ReferenceType.BRANCH, f"team/feature-{number}", head)
    return folder
