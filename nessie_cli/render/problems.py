"""The problems that `fsck` found."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.model import Problem
from nessie_cli.render.spans import Span
from nessie_cli.render.terminal import Terminal

_WIDTH = 13
"""The width of the longest kind."""


def print_problems(problems: Iterable[Problem], terminal: Terminal) -> None:
    """Prints each problem as soon as it is found: kind, object or reference, and message."""
    for problem in problems:
        kind = Span(problem.kind.value.ljust(_WIDTH), "conflict")
        terminal.print_line(kind, " ", Span(problem.where, "key"), f"  {problem.message}")
        terminal.flush()
