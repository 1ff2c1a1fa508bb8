"""The cost of one completion, relative to Python's own start-up.

It shares the repository of `reading`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.commands import How, Measured, ratios
from bench.lake import lake
from bench.report import Line

GOAL, GOAL_OF_LINES = 6.0, 9.0
KEYSTROKES = {
    "a command": ("command", [""]),
    "a branch, all of them": ("reference", ["switch", ""]),
    "a branch, some": ("reference", ["switch", "team/feature-99"]),
    "a revision": ("range", ["log", ""]),
    "a hash, with subjects": ("hash", ["commit", "--expected-hash", ""]),
    "a namespace": ("key", ["content", "show", ""]),
    "a table, all of a namespace": ("key", ["content", "show", "area_0000."]),
    "a table, some": ("key", ["content", "show", "area_0000.table_00001"]),
}


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns the ratios to `python -c pass`."""
    lines = {
        f"TAB for {name}": Measured(("__complete", "--kind", kind, "--", *typed), GOAL)
        for name, (kind, typed) in KEYSTROKES.items()
    }
    lines["a line without a script"] = Measured(
        ("__complete", "--", "switch", "team/feature-99"), GOAL_OF_LINES
    )
    return ratios(lake(scratch, small=how.small), lines, how)
