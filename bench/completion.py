"""What a keystroke of completion costs beside Python's own start, in the repository that `reading` is measured on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.commands import How, Measured, ratios
from bench.lake import lake
from bench.report import Line

GOAL, GOAL_OF_STORE = 3.0, 6.0
KEYSTROKES = {
    "a command": ([""], GOAL),
    "an option": (["log", "--"], GOAL),
    "a branch, all of them": (["switch", ""], GOAL_OF_STORE),
    "a branch, some": (["switch", "team/feature-99"], GOAL_OF_STORE),
    "a revision": (["log", ""], GOAL_OF_STORE),
    "a hash, with subjects": (["commit", "--expected-hash", ""], GOAL_OF_STORE),
    "a namespace": (["content", "show", ""], GOAL_OF_STORE),
    "a table, all of a namespace": (["content", "show", "area_0000."], GOAL_OF_STORE),
    "a table, some": (["content", "show", "area_0000.table_00001"], GOAL_OF_STORE),
}


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """The ratios to `python -c pass`."""
    lines = {f"TAB for {name}": Measured(("__complete", "--", *typed), goal) for name, (typed, goal) in KEYSTROKES.items()}
    return ratios(lake(scratch, small=how.small), lines, how)
