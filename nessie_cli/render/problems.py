"""What `fsck` found."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.model import Problem
from nessie_cli.render.spans import Column
from nessie_cli.render.terminal import Terminal

_COLUMNS = (Column("PROBLEM", "conflict"), Column("WHERE", "key", "fold"), Column("WHAT", room="fold"))


def print_problems(problems: Iterable[Problem], terminal: Terminal) -> None:
    """Each problem: its kind, the object or reference, and what is wrong."""
    terminal.print_table(_COLUMNS, ((found.kind.value, found.where, found.message) for found in problems), paged=True)
