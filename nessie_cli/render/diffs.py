"""Diffs: field by field, by letter (`A`, `M`, `D`, `R`), or as a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nessie_cli.model import Content, type_label
from nessie_cli.render.changes import NOTHING_INSIDE, ChangeKind, ContentChange, Inside, moved
from nessie_cli.render.fields import TYPE, Difference, differences, fields
from nessie_cli.render.spans import Column, Line, Span
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, fit_alike, pad, shorten_middle, visible

_INDENT = 2
_ARROW = " -> "
_LEAST = 10
_WORDS = {
    ChangeKind.CREATED: "created",
    ChangeKind.UPDATED: "updated",
    ChangeKind.DELETED: "deleted",
    ChangeKind.RENAMED: "renamed",
}
_SUMMARY = (Column("CHANGE"), Column("KEY", "key", "fold"), Column("FIELDS", room="cut"))


def print_diff(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints each content with its changed fields."""
    terminal.print_lines(
        (line for change in changes for line in change_lines(change, terminal)), paged=True
    )


def print_name_status(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints a line per content: letter and key; for a rename the old and the new key."""
    terminal.print_records(map(_name_status, changes), paged=True)


def print_names(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints a key per line; for a rename the new one."""
    terminal.print_records(([Span(str(change.key), "key")] for change in changes), paged=True)


def _name_status(change: ContentChange) -> Line:
    return [
        Span(change.kind.value, change.kind.style),
        *(Span(str(key), "key") for key in (change.old_key, change.key) if key),
    ]


def print_summary(changes: Iterable[ContentChange], terminal: Terminal) -> None:
    """Prints each content with the names of its changed fields, then the number of changes."""
    counted: Counter[ChangeKind] = Counter()

    def row(change: ContentChange) -> Sequence[Span | str]:
        counted[change.kind] += 1
        return Span(change.kind.value, change.kind.style), moved(change), changed_labels(change)

    terminal.print_table(_SUMMARY, map(row, changes), paged=True)
    if counted:
        terminal.print_line(
            ", ".join(f"{counted[kind]} {word}" for kind, word in _WORDS.items() if counted[kind])
        )


def changed_labels(change: ContentChange) -> str:
    """Returns the names of changed fields, or the type of a created or deleted content."""
    if change.before and change.after:
        key = ["key"] if change.old_key else []
        return ",".join(
            [*key, *(difference.label for difference in differences((change.before, change.after)))]
        )
    return "".join(
        type_label(content.type_name) for content in (change.before, change.after) if content
    )


def change_lines(change: ContentChange, terminal: Terminal, *, used: int = 0) -> Iterator[Line]:
    """Returns the lines of a content: its change, then its fields.

    Values are shortened to fit beside `used` columns.
    """
    width = terminal.width - used
    content = change.after or change.before
    yield [
        Span(f"{_WORDS[change.kind]} ", change.kind.style),
        Span(moved(change), "key"),
        Span(f"  {type_label(content.type_name) if content else ''}", "label"),
    ]
    if change.before and change.after:
        yield from _field_changes(differences((change.before, change.after)), width)
    elif content:
        yield from _field_values(content, change.kind.style, width)
    yield from _inside_lines(change.inside or NOTHING_INSIDE, width)


def _inside_lines(inside: Inside, width: int) -> Iterator[Line]:
    differing = [Difference(fact.label, (fact.before, fact.after)) for fact in inside.facts]
    yield from _field_changes(differing, width)
    for problem in inside.problems:
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


def _field_values(content: Content, style: str, width: int) -> Iterator[Line]:
    # The line above has the type.
    values = {label: text for label, text in fields(content).items() if label != TYPE}
    labels = max(map(cells, values), default=0)
    room = max(width - _INDENT - labels - 2, _LEAST)
    for label, text in values.items():
        yield [*_label(label, labels), Span(shorten_middle(visible(text), room), style)]


def _label(label: str, width: int) -> list[Span]:
    return [Span(" " * _INDENT), Span(pad(label, width) + "  ", "label")]
