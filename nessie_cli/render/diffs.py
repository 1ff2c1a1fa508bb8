"""Diffs: field by field, by letter (`A`, `M`, `D`, `R`), or as a summary.

People get blocks; programs get records: letter, key, field, before, after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nessie_cli.model import Content, type_label
from nessie_cli.render.changes import NOTHING_INSIDE, Change, ChangeKind, Inside, moved
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
_RECORD = (Column("CHANGE"), Column("KEY"), Column("FIELD"), Column("BEFORE"), Column("AFTER"))
_SUMMARY = (Column("CHANGE"), Column("KEY", "key", "fold"), Column("FIELDS", room="cut"))


def print_diff(changes: Iterable[Change], terminal: Terminal) -> None:
    """Prints fields."""
    if terminal.is_terminal:
        terminal.print_lines(
            (line for change in changes for line in change_lines(change, terminal)), paged=True
        )
    else:
        terminal.print_table(_RECORD, (record for change in changes for record in _records(change)))


def print_name_status(changes: Iterable[Change], terminal: Terminal) -> None:
    """Prints a line per content: letter and key; for a rename the old and the new key."""
    terminal.print_records(map(_name_status, changes), paged=True)


def print_names(changes: Iterable[Change], terminal: Terminal) -> None:
    """Prints a key per line; for a rename the new one."""
    terminal.print_records(([Span(str(change.key), "key")] for change in changes), paged=True)


def _name_status(change: Change) -> Line:
    return [
        Span(change.kind.value, change.kind.style),
        *(Span(str(key), "key") for key in (change.old_key, change.key) if key),
    ]


def print_summary(changes: Iterable[Change], terminal: Terminal) -> None:
    """Prints each content with its changed fields; on a terminal also the number of changes."""
    counted: Counter[ChangeKind] = Counter()

    def row(change: Change) -> Sequence[Span | str]:
        counted[change.kind] += 1
        return Span(change.kind.value, change.kind.style), moved(change), changed_labels(change)

    terminal.print_table(_SUMMARY, map(row, changes), paged=True)
    if terminal.is_terminal and counted:
        terminal.print_line(
            ", ".join(f"{counted[kind]} {word}" for kind, word in _WORDS.items() if counted[kind])
        )


def changed_labels(change: Change) -> str:
    """Returns the names of changed fields, or the type of a created or deleted content."""
    if change.before and change.after:
        key = ["key"] if change.old_key else []
        return ",".join(
            [*key, *(difference.label for difference in differences((change.before, change.after)))]
        )
    return "".join(
        type_label(content.type_name) for content in (change.before, change.after) if content
    )


def change_lines(change: Change, terminal: Terminal, *, used: int = 0) -> Iterator[Line]:
    """Returns the lines of a content: its change, then its fields.

    On a terminal, values are shortened to fit beside `used` columns.
    """
    width = terminal.width - used
    content = change.after or change.before
    yield [
        Span(f"{_WORDS[change.kind]} ", change.kind.style),
        Span(moved(change), "key"),
        Span(f"  {type_label(content.type_name) if content else ''}", "label"),
    ]
    if change.before and change.after:
        yield from _field_changes(differences((change.before, change.after)), terminal, width)
    elif content:
        yield from _field_values(content, change.kind.style, terminal, width)
    yield from _inside_lines(change.inside or NOTHING_INSIDE, terminal, width)


def _inside_lines(inside: Inside, terminal: Terminal, width: int) -> Iterator[Line]:
    found = [Difference(fact.label, (fact.before, fact.after)) for fact in inside.facts]
    yield from _field_changes(found, terminal, width)
    for problem in inside.problems:
        yield [Span(" " * _INDENT), Span("metadata  ", "label"), Span(visible(problem), "conflict")]


def _field_changes(found: Sequence[Difference], terminal: Terminal, width: int) -> Iterator[Line]:
    labels = max((cells(difference.label) for difference in found), default=0)
    room = max((width - _INDENT - labels - 2 - len(_ARROW)) // 2, _LEAST)
    rows = [[visible(text or "") for text in difference.texts] for difference in found]
    if terminal.is_terminal:
        rows = [fit_alike(row, room) for row in rows]
    before_width = max((cells(row[0]) for row in rows), default=0)
    for difference, (before, after) in zip(found, rows, strict=True):
        yield [
            *_label(difference.label, labels),
            Span(pad(before, before_width), "before"),
            Span(_ARROW),
            Span(after, "after"),
        ]


def _field_values(content: Content, style: str, terminal: Terminal, width: int) -> Iterator[Line]:
    # The line above has the type.
    values = {label: text for label, text in fields(content).items() if label != TYPE}
    labels = max(map(cells, values), default=0)
    room = max(width - _INDENT - labels - 2, _LEAST)
    for label, text in values.items():
        shown = visible(text)
        yield [
            *_label(label, labels),
            Span(shorten_middle(shown, room) if terminal.is_terminal else shown, style),
        ]


def _label(label: str, width: int) -> list[Span]:
    return [Span(" " * _INDENT), Span(pad(label, width) + "  ", "label")]


def _records(change: Change) -> Iterator[Sequence[str]]:
    letter, key = change.kind.value, str(change.key)
    if change.old_key:
        yield letter, key, "key", str(change.old_key), key
    if change.before and change.after:
        yield from (
            (letter, key, d.label, d.texts[0] or "", d.texts[1] or "")
            for d in differences((change.before, change.after))
        )
    elif change.after:
        yield from ((letter, key, label, "", text) for label, text in fields(change.after).items())
    elif change.before:
        yield from ((letter, key, label, text, "") for label, text in fields(change.before).items())
    inside = change.inside or NOTHING_INSIDE
    yield from (
        (letter, key, fact.label, fact.before or "", fact.after or "") for fact in inside.facts
    )
    yield from ((letter, key, "metadata", "", problem) for problem in inside.problems)
