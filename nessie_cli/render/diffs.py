"""Diffs: field by field, by letter (`A`, `M`, `D`, `R`), or as a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nessie_cli.inspection.changes import ChangeKind, ContentChange
from nessie_cli.inspection.fields import (
    Difference,
    changed_fields,
    changed_labels,
    metadata_fields,
)
from nessie_cli.inspection.text import visible
from nessie_cli.model import type_label
from nessie_cli.render.spans import Column, Line, Span, Table
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, fit_alike, pad, shorten_middle

_INDENT = 2
_ARROW = " -> "
_LEAST = 10
_SUMMARY = (Column("CHANGE"), Column("KEY", "key", "fold"), Column("FIELDS", room="cut"))


def print_diff(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints each content with its changed fields."""
    terminal.print_lines(
        (line for change in changes for line in change_lines(change, terminal)), paged=True
    )


def print_name_status(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints a line per content: letter and key; for a rename the old and the new key."""
    terminal.print_records(map(_name_status, changes))


def print_names(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints a key per line; for a rename the new one."""
    terminal.print_records([Span(str(change.key), "key")] for change in changes)


def _name_status(change: ContentChange) -> Line:
    return [
        Span(change.kind.value, change.kind.word),
        *(Span(str(key), "key") for key in (change.old_key, change.key) if key),
    ]


def print_summary(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints each content with the names of its changed fields, then the number of changes."""
    counts: Counter[ChangeKind] = Counter()

    def counted() -> Iterator[ContentChange]:
        for change in changes:
            counts[change.kind] += 1
            yield change

    terminal.print_table(*changes_table(counted()), paged=True)
    if counts:
        terminal.print_line(
            ", ".join(f"{counts[kind]} {kind.word}" for kind in ChangeKind if counts[kind])
        )


def changes_table(changes: Iterable[ContentChange]) -> Table:
    """Returns a row for each content: its change, its keys, the names of its changed fields."""
    rows = (
        (
            Span(change.kind.value, change.kind.word),
            change.keys,
            ",".join(changed_labels(change)),
        )
        for change in changes
    )
    return Table(_SUMMARY, rows)


def change_lines(change: ContentChange, terminal: Terminal, *, used: int = 0) -> Iterator[Line]:
    """Returns the lines of a content: its change, then its fields.

    Values are shortened to fit beside `used` columns.
    """
    width = terminal.width - used
    content = change.after or change.before
    yield [
        Span(f"{change.kind.word} ", change.kind.word),
        Span(change.keys, "key"),
        Span(f"  {type_label(content.type_name) if content else ''}", "label"),
    ]
    if change.before and change.after:
        yield from _field_changes(changed_fields(change), width)
    else:
        yield from _field_values(changed_fields(change), change.kind.word, width)
    yield from _field_changes(metadata_fields(change), width)
    for problem in change.metadata.problems if change.metadata else ():
        yield [Span(" " * _INDENT), Span("metadata  ", "label"), Span(visible(problem), "conflict")]


def _field_changes(differing: Sequence[Difference], width: int) -> Iterator[Line]:
    labels = max((cells(difference.label) for difference in differing), default=0)
    room = max((width - _INDENT - labels - 2 - len(_ARROW)) // 2, _LEAST)
    rows = [
        fit_alike([visible(text or "") for text in difference.texts], room)
        for difference in differing
    ]
    before_width = max((cells(row[0]) for row in rows), default=0)
    for difference, (before, after) in zip(differing, rows, strict=True):
        yield [
            *_label(difference.label, labels),
            Span(pad(before, before_width), "before"),
            Span(_ARROW),
            Span(after, "after"),
        ]


def _field_values(rows: Sequence[Difference], style: str, width: int) -> Iterator[Line]:
    """Returns the fields of a content that exists on one side only."""
    labels = max((cells(row.label) for row in rows), default=0)
    room = max(width - _INDENT - labels - 2, _LEAST)
    for label, texts in rows:
        text = shorten_middle(visible(next(filter(None, texts), "")), room)
        yield [*_label(label, labels), Span(text, style)]


def _label(label: str, width: int) -> list[Span]:
    return [Span(" " * _INDENT), Span(pad(label, width) + "  ", "label")]
