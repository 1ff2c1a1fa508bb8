"""Conflicts for people: the changes of both sides, three states, and resolving commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import json

from nessie_cli.errors import Resolution, WaysOut
from nessie_cli.inspection.conflicts import SideChange, differing_fields, side_changes
from nessie_cli.inspection.fields import TYPE, Difference
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import CommitMeta, Conflict, ConflictType, RowConflict
from nessie_cli.render.commits import commit_lines
from nessie_cli.render.spans import Line, Span, trimmed
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, counted, fit_alike, pad, shorten_end, wrap

NOTHING = "(none)"
"""The text for a missing content."""
_TITLE = "conflict: "
_BEFORE_TYPE = "   "
_INDENT = "  "
_LABELS = 19
_GAP = 2
_LEAST = 10
_MOST_FILES = 3
_MOST_ROWS = 10
"""The most files of a collision that a report names."""
_STYLES = ("before", "updated", "after")
_LOCATION = "metadata-location"
_TOLD_BY_THE_MESSAGE = (
    ConflictType.NAMESPACE_ABSENT,
    ConflictType.NOT_A_NAMESPACE,
    ConflictType.NAMESPACE_NOT_EMPTY,
    ConflictType.UNEXPECTED_HASH,
    ConflictType.UNKNOWN,
)
"""Types whose message says more than that both sides changed a key."""


class ConflictSides(NamedTuple):
    """The titles of the three states, and the places of both changes: `on main`."""

    titles: tuple[str, str, str]
    places: tuple[str, str]


def sides_of_batch(branch: str | None) -> ConflictSides:
    """Returns the sides of a conflict between a branch and a batch."""
    return ConflictSides(
        ("expected", "current", "proposed"), (f"on {visible(branch or 'HEAD')}", "in the batch")
    )


def sides_of_merge(branch: str | None, source: str | None) -> ConflictSides:
    """Returns the sides of a merge or transplant; a revert has no source."""
    ours = visible(branch or "HEAD")
    if not source:
        return ConflictSides(("base", f"ours ({ours})", "theirs"), (f"on {ours}", "by the revert"))
    theirs = visible(source)
    return ConflictSides(
        ("base", f"ours ({ours})", f"theirs ({theirs})"), (f"on {ours}", f"on {theirs}")
    )


Figures = Callable[[Conflict], Sequence[Mapping[str, str]]]
"""Returns rows, files and columns of each of the three states, by label."""


def _no_figures(_: Conflict) -> Sequence[Mapping[str, str]]:
    return ()


class ConflictReport(NamedTuple):
    """Conflicts, the names of their sides, and the command lines that resolve them."""

    conflicts: Sequence[Conflict]
    sides: ConflictSides
    figures: Figures = _no_figures
    ways_out: WaysOut = WaysOut()


def conflict_lines(report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    """Yields one block for each conflict, with an empty line between two blocks.

    Of several conflicts, a line each comes first, and command lines for all of them come last.
    """
    several, ways_out = len(report.conflicts) > 1, report.ways_out
    if several:
        yield from _list(report, terminal)
    for number, conflict in enumerate(report.conflicts):
        if number or several:
            yield []
        yield from _headline(conflict, report.sides, terminal)
        yield from _comparison(conflict, report, terminal)
        yield from _renames(conflict, report.sides)
        yield from _collisions(conflict, terminal)
        if conflict.commit is not None:
            yield _row("commit", Span(short_hash(conflict.commit), "hash"))
        yield from _by("changed by", conflict.changed_by, terminal)
        yield from _by("theirs by", conflict.theirs_changed_by, terminal)
        yield from _not_possible(conflict, report, terminal)
        alone = _resolver_line(ways_out) if conflict.key and not several else ()
        yield from _resolve_lines(ways_out.of(conflict), alone)
    if ways_out.effect_of_given:
        yield []
        yield from effect_lines(ways_out, terminal)
    if several and (lines := list(_resolve_lines(ways_out.together(), _resolver_line(ways_out)))):
        yield []
        yield [Span("all conflicts", "label")]
        yield from lines


def _not_possible(conflict: Conflict, report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    """Yields why theirs cannot be taken, or the staged change cannot be kept."""
    text = ""
    if (namespace := conflict.blocking_namespace) is not None:
        text = f"theirs, because namespace {visible(str(namespace))} is not empty"
    elif reason := report.ways_out.reason_against_proposed(conflict):
        text = f"{report.sides.titles[2]}, because {visible(reason)}"
    room = max(terminal.width - len(_INDENT) - _LABELS, _LEAST)
    for number, line in enumerate(wrap(text, room) if text else ()):
        yield _row("" if number else "not possible", Span(line))


def effect_lines(ways_out: WaysOut, terminal: Terminal) -> Iterator[Line]:
    """Yields what the decisions that were given do to contents; nothing without an effect."""
    if ways_out.effect_of_given:
        yield [Span("decisions so far", "label")]
    room = max(terminal.width - len(_INDENT), _LEAST)
    for text in wrap(ways_out.effect_of_given, room) if ways_out.effect_of_given else ():
        yield [Span(_INDENT), Span(text, "conflict")]


def _by(label: str, commit: CommitMeta | None, terminal: Terminal) -> Iterator[Line]:
    """Yields the commit that changed the key on one side."""
    room = terminal.width - len(_INDENT) - _LABELS
    lines = commit_lines(commit, terminal, room=room) if commit else ()
    for number, spans in enumerate(lines):
        yield trimmed(_row("" if number else label, *spans))


def _list(report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    """Yields a line for each conflict: its key, and what both sides did."""
    keys = [visible(str(conflict.key)) if conflict.key else "" for conflict in report.conflicts]
    widest = min(max(map(cells, keys)), terminal.width // 2)
    for key, conflict in zip(keys, report.conflicts, strict=True):
        sentence = _sentence(conflict, report.sides) or visible(conflict.message)
        text = sentence.removeprefix(f"{key} ").removeprefix("was ")
        room = max(terminal.width - len(_INDENT) - max(widest, cells(key)) - _GAP, _LEAST)
        head = Span(pad(key, widest + _GAP if text else 0), "key")
        yield trimmed([Span(_INDENT), head, Span(shorten_end(text, room))])


def _row(label: str, *spans: Span) -> Line:
    return [Span(_INDENT), Span(pad(label, _LABELS), "label"), *spans]


# -- what happened ---------------------------------------------------------------------------------


def _headline(conflict: Conflict, sides: ConflictSides, terminal: Terminal) -> Iterator[Line]:
    """`conflict: KEY was changed on main and on nightly   VALUE_DIFFERS`."""
    text = _sentence(conflict, sides) or visible(conflict.message)
    first, *others = wrap(text, terminal.width - len(_TITLE))
    key = visible(str(conflict.key)) if conflict.key else ""
    rest = first.removeprefix(key)
    lines = [
        [Span(_TITLE, "conflict"), Span(key if rest != first else "", "key"), Span(rest)],
        *([Span(_INDENT), Span(line)] for line in others),
    ]
    kind = Span(conflict.type.value, "conflict")
    width = sum(cells(span.text) for span in lines[-1])
    if width + len(_BEFORE_TYPE) + len(kind.text) > terminal.width:
        lines.append([Span(_INDENT), kind])
    else:
        lines[-1] += [Span(_BEFORE_TYPE), kind]
    yield from lines


def _sentence(conflict: Conflict, sides: ConflictSides) -> str:
    """Returns what both sides did to the key; an empty text if the states are not known."""
    if conflict.key is None or conflict.type in _TOLD_BY_THE_MESSAGE:
        return ""
    if conflict.other_key is not None:
        names = (visible(str(key)) for key in (conflict.key, conflict.other_key))
        return "{} would be a second key of the content {}".format(*names)
    if conflict.same_file_key is not None:
        names = (visible(str(key)) for key in (conflict.key, conflict.same_file_key))
        return "{} has the metadata file of {}: one table would have two keys".format(*names)
    done = list(zip(map(_done, side_changes(conflict)), sides.places, strict=True))
    (first, here), (second, there) = done
    if conflict.theirs_key not in (None, conflict.key) and conflict.source_rename is None:
        second = f"{second} as {visible(str(conflict.theirs_key))}"
    key = visible(str(conflict.key))
    if first and second:
        return f"{key} was {first} {here} and {there if first == second else f'{second} {there}'}"
    return next((f"{key} was {verb} {place}" for verb, place in done if verb), "")


def _done(change: SideChange) -> str:
    """Returns what one side did to a content."""
    verbs = " and ".join(change.verbs)
    return f"{verbs} from {visible(str(change.old_key))}" if change.old_key else verbs


def _renames(conflict: Conflict, sides: ConflictSides) -> Iterator[Line]:
    for place, rename in (
        (sides.places[1], conflict.source_rename),
        (sides.places[0], conflict.target_rename),
    ):
        if rename:
            spans = [Span(str(rename.old), "key"), Span(" to "), Span(str(rename.new), "key")]
            spans.append(Span(f" {place}"))
            if rename.by and rename.by.hash:
                spans += [Span(" by "), Span(short_hash(rename.by.hash), "hash")]
            yield _row("renamed", *spans)


def _collisions(conflict: Conflict, terminal: Terminal) -> Iterator[Line]:
    """Yields the reasons why the files of a table do not combine, and the first files."""
    room = max(terminal.width - len(_INDENT) - _LABELS, _LEAST)
    for collision in conflict.collisions:
        for number, text in enumerate(wrap(visible(collision.reason), room)):
            yield _row("" if number else "not combined", Span(text))
        for file in collision.files[:_MOST_FILES]:
            where = f"{file.partition}, " if file.partition else ""
            about = f" ({where}{counted(file.rows, 'row')})"
            name = file.path.rpartition("/")[2]
            yield _row("", Span(shorten_end(visible(name), room - cells(about))), Span(about))
        if len(collision.files) > _MOST_FILES:
            yield _row("", Span(f"and {len(collision.files) - _MOST_FILES} more files"))
        for row in collision.rows[:_MOST_ROWS]:
            yield from _row_in_conflict(row, room)
        if len(collision.rows) > _MOST_ROWS:
            yield _row("", Span(f"and {len(collision.rows) - _MOST_ROWS:,} more"))


def row_conflict_lines(table: str, row: RowConflict, terminal: Terminal) -> Iterator[Line]:
    """Yields a row or cell in conflict, with its three states."""
    yield [Span(visible(table), "key")]
    yield from _row_in_conflict(row, max(terminal.width - len(_INDENT) - _LABELS, _LEAST))


def _row_in_conflict(row: RowConflict, room: int) -> Iterator[Line]:
    """Yields a row in conflict by its key, and the three states of a cell or of the row."""
    key = ", ".join(f"{name}={_value(value)}" for name, value in row.key.items())
    what = f"{key}: {row.column}" if row.column is not None else key
    yield _row("", Span(shorten_end(visible(what), room), "key"))
    for name, value in (("base", row.base), ("ours", row.ours), ("theirs", row.theirs)):
        label = f"  {name:<7}"
        yield _row("", Span(label), Span(shorten_end(visible(_value(value)), room - cells(label))))


def _value(value: Any) -> str:
    """Returns the text of a value: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.encode(value).decode()


# -- the three states ------------------------------------------------------------------------------


def _comparison(conflict: Conflict, report: ConflictReport, terminal: Terminal) -> Iterator[Line]:
    """Returns the fields that differ between the three states, or nothing for unknown states.

    They are a table if every value fits, otherwise one value per line.
    """
    if not any((conflict.expected, conflict.actual, conflict.proposed)):
        return
    fields = [
        (visible(difference.label), _spelled(difference))
        for difference in differing_fields(conflict, report.figures(conflict))
    ]
    titles = report.sides.titles
    labels = max([_LABELS, *(cells(label) + _GAP for label, _ in fields)])
    rows = [titles, *(texts for label, texts in fields if label != _LOCATION)]
    widths = [max(cells(row[i]) for row in rows) for i in range(len(titles))]
    spare = terminal.width - len(_INDENT) - labels - sum(widths) - _GAP * (len(titles) - 1)
    room = min(widths) + spare // len(titles)
    if spare >= 0 and room >= _LEAST:
        yield from _table(fields, titles, labels, room)
    else:
        yield from _listed(fields, titles, terminal.width)


def _table(
    fields: Sequence[tuple[str, list[str]]], titles: Sequence[str], labels: int, room: int
) -> Iterator[Line]:
    """Returns a table with a column for each state. Locations are shortened to `room` columns."""
    rows = [fit_alike(texts, room) if label == _LOCATION else texts for label, texts in fields]
    widths = [max(cells(row[i]) for row in [titles, *rows]) + _GAP for i in range(len(titles))]

    def line(label: str, texts: Sequence[str], styles: Sequence[str]) -> Line:
        values = [
            Span(pad(text, width), style)
            for text, width, style in zip(texts, widths, styles, strict=True)
        ]
        return trimmed([Span(_INDENT), Span(pad(label, labels), "label"), *values])

    yield line("", titles, ["label"] * len(titles))
    for (label, _), texts in zip(fields, rows, strict=True):
        yield line(label, texts, _STYLES)


def _listed(
    fields: Sequence[tuple[str, list[str]]], titles: Sequence[str], width: int
) -> Iterator[Line]:
    """Returns each field, and below it its value in each state."""
    short = _short(titles)
    for title, full in zip(short, titles, strict=True):
        if full != title:
            yield _row(title, Span(full.removeprefix(title).strip(" ()"), "name"))
    room = max(width - len(_INDENT) - _LABELS, _LEAST)
    for label, texts in fields:
        yield [Span(_INDENT), Span(label, "label")]
        for title, text, style in zip(short, fit_alike(texts, room), _STYLES, strict=True):
            head = _INDENT + pad(title, _LABELS - len(_INDENT))
            yield trimmed([Span(_INDENT), Span(head, "label"), Span(text, style)])


def _short(titles: Sequence[str]) -> Sequence[str]:
    """Returns the titles without the names of branches if one of them is too long for a label."""
    if max(map(cells, titles)) <= _LABELS - len(_INDENT) - _GAP:
        return titles
    return [title.partition(" ")[0] for title in titles]


def _spelled(difference: Difference) -> list[str]:
    missing = NOTHING if difference.label == TYPE else ""
    return [missing if text is None else visible(text) for text in difference.texts]


# -- the way out -----------------------------------------------------------------------------------


def _resolver_line(ways_out: WaysOut) -> Sequence[Span]:
    """Returns the command that asks about the conflicts, if there is one."""
    if not ways_out.one_by_one:
        return ()
    what = "combine tables, if that is safe" if ways_out.combines else "one by one"
    return Span(ways_out.one_by_one, "command"), Span(f"   # {what}", "label")


def _resolve_lines(resolutions: Sequence[Resolution], resolver: Sequence[Span]) -> Iterator[Line]:
    """Returns the command lines, never shortened, because people paste them.

    Each is followed by its effect on other contents.
    """
    label = "resolve"
    if resolver:
        yield _row(label, *resolver)
        label = "or"
    for command, effect in resolutions:
        yield _row(label, Span(command, "command"))
        if effect:
            yield _row("", Span(f"({effect})", "conflict"))
        label = "or"
