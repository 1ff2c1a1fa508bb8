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
    for found in problems:
        if terminal.is_terminal:
            kind = Span(found.kind.value.ljust(_WIDTH), "conflict")
            terminal.print_line(kind, " ", Span(found.where, "key"), f"  {found.message}")
        else:
            terminal.print_records(
                [[Span(found.kind.value), Span(found.where), Span(found.message)]]
            )
        terminal.flush()
