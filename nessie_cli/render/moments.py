"""The history of one content: each commit in a line, and below it what it did to the content; for a program one record per commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nessie_cli.model import LogEntry
from nessie_cli.render.changes import Change, moved
from nessie_cli.render.conflicts import commit_spans
from nessie_cli.render.diffs import change_lines, changed_labels
from nessie_cli.render.spans import Column, Line
from nessie_cli.render.terminal import Terminal
from nessie_cli.wire.encode import encode_key, encode_optional_content
from nessie_cli.wire.facts import log_entry_with_facts

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
    """Write them as they are found."""
    if terminal.is_terminal:
        terminal.print_lines((line for entry, change in moments for line in _lines(entry, change, terminal)), paged=True)
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


def encode_moment(entry: LogEntry, change: Change) -> dict[str, Any]:
    """A commit of the log, the key that the content had after it, what happened, and both states; `renamedFrom` where it came from another key."""
    body = log_entry_with_facts(entry) | {
        "key": encode_key(change.key),
        "change": change.kind.name,
        "fields": [label for label in changed_labels(change).split(",") if label],
        "from": encode_optional_content(change.before),
        "to": encode_optional_content(change.after),
    }
    return body | ({"renamedFrom": encode_key(change.old_key)} if change.old_key else {})
