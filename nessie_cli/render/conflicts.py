"""Conflict diagnostics: per key what was expected, what is there now and what was proposed, who changed it, and the commands that resolve it.

The same block stands under a failed commit, merge or transplant, under a dry run and in `status`. On a terminal long values are shortened so that
the block fits; elsewhere they are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nessie_cli.model import CommitMeta, Conflict, Rename
from nessie_cli.render.fields import TYPE, differences
from nessie_cli.render.spans import Line, Span, trimmed
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, fit_alike, pad, shorten_end, visible, wrap

_LABELS = 18
_GAP = 2
_LEAST = 10
_LEAST_SUBJECT = 8
BATCH_SIDES = ("expected", "current", "proposed")
MERGE_SIDES = ("base", "ours", "theirs")
"""The names of the three states of a conflict."""
_STYLES = ("before", "updated", "after")
NOTHING = "(none)"
"""Stands for a content that is not there."""
_BETWEEN = "   or   "


def _no_commands(_: Conflict) -> Sequence[str]:
    return ()


class ConflictReport(NamedTuple):
    """Conflicts and where they are.

    `distance` counts the commits since `expected_hash`, where known. `resolutions` gives the command lines that resolve one conflict,
    `resolver` is the one that asks about each of them.
    `would` for what has not been tried yet. `sides` are the titles of the three states.
    """

    conflicts: Sequence[Conflict]
    reference: str | None = None
    head: str | None = None
    expected_hash: str | None = None
    distance: int | None = None
    resolutions: Callable[[Conflict], Sequence[str]] = _no_commands
    resolver: str = ""
    would: bool = False
    sides: tuple[str, str, str] = BATCH_SIDES


def conflict_lines(report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    """The title, then one block per conflict."""
    yield _title(report, terminal)
    for number, conflict in enumerate(report.conflicts):
        if number:
            yield []
        yield from _block(conflict, report, terminal)


def _title(report: ConflictReport, terminal: Terminal) -> Line:
    count = len(report.conflicts)
    many = f"{count} keys would conflict" if report.would else f"{count} conflicts"
    spans = [
        Span(many if count != 1 else "would conflict" if report.would else "conflict", "conflict")
    ]
    if report.reference:
        spans += [Span(" on "), Span(report.reference, "name")]
    if report.head:
        spans += [Span(" at "), Span(terminal.hash(report.head), "hash")]
    if report.expected_hash and report.expected_hash != report.head:
        since = (
            f", {report.distance} commit{'' if report.distance == 1 else 's'} ago"
            if report.distance
            else ""
        )
        spans += [
            Span(" (you started from "),
            Span(terminal.hash(report.expected_hash), "hash"),
            Span(f"{since})"),
        ]
    return spans


def _block(conflict: Conflict, report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    table = _comparison(conflict, report.sides, terminal)
    yield _headline(conflict, report, table.widths, terminal)
    yield from table.lines
    if not table.lines or not conflict.changed_by:
        reason = visible(conflict.message)
        for part in (
            wrap(reason, terminal.width - _LABELS - 1) if terminal.is_terminal else [reason]
        ):
            yield _row("reason" if reason.startswith(part) else "", Span(part))
    for side, rename in (
        ("in the source", conflict.source_rename),
        ("on the target", conflict.target_rename),
    ):
        if rename:
            yield _row("renamed", *_renamed(rename, side, terminal))
    if conflict.changed_by:
        for number, spans in enumerate(
            commit_lines(conflict.changed_by, terminal, room=terminal.width - _LABELS - 1)
        ):
            yield trimmed(_row("" if number else "changed by", *spans))
    yield from _resolve_lines(
        report.resolutions(conflict), report.resolver if conflict.key else "", terminal
    )


def _row(label: str, *spans: Span) -> Line:
    return [Span(" "), Span(pad(label, _LABELS), "label"), *spans]


class _Table(NamedTuple):
    widths: Sequence[int]
    lines: Sequence[Line]


def _comparison(conflict: Conflict, sides: Sequence[str], terminal: Terminal) -> _Table:
    """The fields on which the three sides disagree; no lines where no side is known, as it is with conflicts that a server tells."""
    states = (conflict.expected, conflict.actual, conflict.proposed)
    if not any(states):
        return _Table((), ())
    found = [(visible(label), _spelled(label, texts)) for label, texts in differences(states)]
    labels = max([_LABELS, *(cells(label) + 1 for label, _ in found)])
    room = (terminal.width - 1 - labels) // len(sides) - _GAP
    rows = [
        fit_alike(texts, max(room, _LEAST)) if terminal.is_terminal else texts for _, texts in found
    ]
    titles = (
        [shorten_end(side, max(room, _LEAST)) for side in sides] if terminal.is_terminal else sides
    )
    widths = [max(cells(row[i]) for row in [titles, *rows]) + _GAP for i in range(len(sides))]
    heading = [
        Span(" " * (labels + 1)),
        *(Span(pad(title, width), "label") for title, width in zip(titles, widths, strict=True)),
    ]
    lines: list[Line] = [heading]
    for (label, _), row in zip(found, rows, strict=True):
        values = [
            Span(pad(text, width), style)
            for text, width, style in zip(row, widths, _STYLES, strict=True)
        ]
        lines.append([Span(" "), Span(pad(label, labels), "label"), *values])
    return _Table(widths, [trimmed(line) for line in lines])


def _spelled(label: str, texts: Sequence[str | None]) -> list[str]:
    missing = NOTHING if label == TYPE else ""
    return [missing if text is None else visible(text) for text in texts]


def _headline(
    conflict: Conflict, report: ConflictReport, widths: Sequence[int], terminal: Terminal
) -> Line:
    label, name = (
        ("key", str(conflict.key)) if conflict.key else ("reference", report.reference or "")
    )
    name = visible(name)
    column = max(sum(widths[:2]), cells(name) + _GAP)
    if terminal.is_terminal:
        column = max(
            min(column, terminal.width - _LABELS - 1 - len(conflict.type)), cells(name) + 1
        )
    return _row(label, Span(pad(name, column), "key"), Span(conflict.type.value, "conflict"))


def _renamed(rename: Rename, side: str, terminal: Terminal) -> list[Span]:
    spans = [
        Span(str(rename.old), "key"),
        Span(" to "),
        Span(str(rename.new), "key"),
        Span(f" {side}"),
    ]
    if rename.by and rename.by.hash:
        spans += [Span(" by "), Span(terminal.hash(rename.by.hash), "hash")]
    return spans


def commit_spans(meta: CommitMeta, terminal: Terminal, *, room: int) -> list[Span]:
    """A commit in one line: hash, subject, author, when. On a terminal the subject is shortened to fit into `room` columns."""
    hash_ = Span(terminal.hash(meta.hash or ""), "hash")
    tail = Span(
        ", ".join(
            filter(
                None,
                [
                    visible(terminal.person(meta.author or meta.committer or "")),
                    terminal.time(meta.commit_time),
                ],
            )
        ),
        "author",
    )
    subject = visible(meta.subject)
    if terminal.is_terminal:
        beside = room - cells(hash_.text) - cells(tail.text) - 4
        subject = shorten_end(subject, max(beside, _LEAST_SUBJECT))
    return [hash_, Span(f' "{subject}" '), tail]


def commit_lines(meta: CommitMeta, terminal: Terminal, *, room: int) -> list[list[Span]]:
    """The same, on two lines where the terminal is too narrow for one."""
    hash_, subject, tail = commit_spans(meta, terminal, room=room)
    if not terminal.is_terminal or cells(hash_.text + subject.text + tail.text) <= room:
        return [[hash_, subject, tail]]
    return [commit_spans(meta, terminal, room=room + cells(tail.text))[:2], [tail]]


def _resolve_lines(commands: Sequence[str], resolver: str, terminal: Terminal) -> Iterator[Line]:
    """Command lines are never shortened: they are there to be pasted."""
    if resolver:
        yield _row(
            "resolve",
            Span(resolver, "command"),
            *([Span("   (one by one)", "label")] if terminal.is_terminal else []),
        )
        for command in commands:
            yield _row("or", Span(command, "command"))
        return
    if not commands:
        return
    joined = _LABELS + 1 + cells(_BETWEEN.join(commands))
    if terminal.is_terminal and joined <= terminal.width:
        spans = [
            span for command in commands for span in (Span(_BETWEEN), Span(command, "command"))
        ]
        yield _row("resolve", *spans[1:])
        return
    for number, command in enumerate(commands):
        yield _row("or" if number else "resolve", Span(command, "command"))
