"""Times command lines until their first page, relative to Python's own start-up.

`startup`, `completion` and `reading` share this module. The wall time is that of the fastest of
interleaved runs, because disturbances only make a run slower. On a busy machine, `--by processor`
measures the processor time of each run instead. `--by instructions` counts instructions with
valgrind, in one run; the result is repeatable. Neither includes waiting for the disk.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import nessie_cli
from bench.report import MILLI, Line

SCRIPT = str(Path(sys.executable).with_name("nessie"))
PAGE = 8192
"""Bytes of the first page: one write to a pipe, more than a terminal shows."""

_MILLION = 1_000_000
_VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
_COLLECTED = re.compile(r"Collected : ([0-9]+)")
_NOT_FOR_COMMANDS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH")
"""Variables that slow down every start, or make it find other modules."""


class Measured(NamedTuple):
    """A command line without `nessie`, and its limit as a multiple of `python -c pass`."""

    words: Sequence[str]
    goal: float


class How(NamedTuple):
    """How to measure: the unit, the number of interleaved runs, the lines, and the repository.

    `only` selects the lines with this text in their names.
    """

    by: str = "clock"
    rounds: int = 21
    only: str = ""
    small: bool = False


def workspace(folder: Path) -> Path:
    """Creates a workspace and returns the path of its store."""
    folder.mkdir(parents=True)
    run(folder, "init")
    return folder / ".nessie" / "store.sqlite"


def run(folder: Path, *words: str) -> None:
    """Runs a command to its end. Raises an error if it fails."""
    subprocess.run(
        [SCRIPT, *words],
        cwd=folder,
        env=_environment(),
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def ratios(folder: Path, lines: Mapping[str, Measured], how: How) -> Iterator[Line]:
    """Returns the cost of each command line as a ratio to `python -c pass`."""
    compiled()
    chosen = {name: line for name, line in lines.items() if how.only in name}
    commands = [
        [sys.executable, "-c", "pass"],
        *([SCRIPT, *line.words] for line in chosen.values()),
    ]
    count, rounds = WAYS[how.by]
    taken = [[count(command, folder) for command in commands] for _ in range(rounds or how.rounds)]
    bare, *ours = [min(column) for column in zip(*taken, strict=True)]
    for (name, line), found in zip(chosen.items(), ours, strict=True):
        yield Line(
            f"{name} : python -c pass", found / bare, "x", line.goal, _made_of(found, bare, how)
        )


def _made_of(found: float, bare: float, how: How) -> str:
    if how.by == "instructions":
        return f"{found / _MILLION:.0f} / {bare / _MILLION:.0f} million instructions"
    what = "" if how.by == "clock" else " of processor time"
    return (
        f"{MILLI * found:.1f} ms / {MILLI * bare:.1f} ms{what}, fastest of {how.rounds}"
        " interleaved runs"
    )


def compiled() -> None:
    """Compiles our modules, as an installation does.

    Otherwise the first start compiles them, or every start if bytecode cannot be written.
    """
    folder = str(Path(nessie_cli.__file__).parent)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", folder], env=_environment(), check=True
    )


def _environment() -> dict[str, str]:
    """Returns the environment of the process, without variables that affect a command."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _NOT_FOR_COMMANDS and not name.startswith("NESSIE_")
    }


def _until_first_page(command: Sequence[str], folder: Path) -> float:
    begun = time.perf_counter()
    found: list[float] = []
    _first_page(command, folder, lambda: found.append(time.perf_counter() - begun))
    return found[0]


def _processor_time(command: Sequence[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _first_page(command, folder, lambda: None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _instructions(command: Sequence[str], folder: Path) -> float:
    if shutil.which(_VALGRIND[0]) is None:
        raise SystemExit("--by instructions: there is no valgrind here")
    errors = _first_page([*_VALGRIND, *command], folder, lambda: None)
    found = _COLLECTED.search(errors)
    if found is None:
        raise SystemExit(f"{' '.join(command)}: {errors}")
    return float(found[1])


def _first_page(command: Sequence[str], folder: Path, page_read: Callable[[], None]) -> str:
    """Reads a page, calls `page_read`, and ends the command as Ctrl-C in a pager does.

    Returns the text on stderr.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=_environment(), **pipes) as process:  # type: ignore[call-overload]
        page = process.stdout.read(PAGE)
        page_read()
        if len(page) == PAGE:
            process.terminate()
        process.stdout.close()
        errors: str = process.stderr.read().decode()
    if process.returncode not in (0, 141, -signal.SIGTERM):
        raise SystemExit(f"{' '.join(command)}: ended with {process.returncode}: {errors}")
    return errors


WAYS: Mapping[str, tuple[Callable[[Sequence[str], Path], float], int]] = {
    "clock": (_until_first_page, 0),
    "processor": (_processor_time, 0),
    "instructions": (_instructions, 1),
}
"""The ways to measure a command, each with its fixed number of runs, if any."""
