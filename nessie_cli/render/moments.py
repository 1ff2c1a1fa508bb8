"""The history of one content: a line for each commit, followed by its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nessie_cli.inspection.changes import ContentChange
from nessie_cli.model import LogEntry
from nessie_cli.render.commits import commit_spans
from nessie_cli.render.diffs import change_lines
from nessie_cli.render.spans import Line
from nessie_cli.render.terminal import Terminal


def print_moments(moments: Iterable[tuple[LogEntry, ContentChange]], terminal: Terminal) -> None:
    """Prints commits with their changes."""
    terminal.print_lines(
        (line for entry, change in moments for line in _lines(entry, change, terminal)),
        paged=True,
    )


def _lines(entry: LogEntry, change: ContentChange, terminal: Terminal) -> Iterator[Line]:
    yield commit_spans(entry.meta, terminal, room=terminal.width)
    yield from change_lines(change, terminal)
    yield []
