"""The history of one content: a line for each commit, followed by its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nessie_cli.model import LogEntry
from nessie_cli.render.changes import Change, moved
from nessie_cli.render.conflicts import commit_spans
from nessie_cli.render.diffs import change_lines, changed_labels
from nessie_cli.render.spans import Column, Line
from nessie_cli.render.terminal import Terminal

_RECORD = (
    Column("HASH", "hash"),
    Column("TIME", "time"),
    Column("AUTHOR", "author"),
    Column("CHANGE"),
    Column("KEY", "key"),
    Column("FIELDS"),
    Column("SUBJECT"),
)


def print_moments(moments: Iterable[tuple[LogEntry, Change]], terminal: Terminal) -> None:
    """Prints commits with their changes; when stdout is not a terminal, one line each."""
    if terminal.is_terminal:
        terminal.print_lines(
            (line for entry, change in moments for line in _lines(entry, change, terminal)),
            paged=True,
        )
        return
    rows = (
        (
            entry.hash,
            terminal.time(entry.meta.commit_time),
            entry.meta.author,
            change.kind.value,
            moved(change),
            changed_labels(change),
            entry.meta.subject,
        )
        for entry, change in moments
    )
    terminal.print_table(_RECORD, rows)


def _lines(entry: LogEntry, change: Change, terminal: Terminal) -> Iterator[Line]:
    yield commit_spans(entry.meta, terminal, room=terminal.width)
    yield from change_lines(change, terminal)
    yield []
