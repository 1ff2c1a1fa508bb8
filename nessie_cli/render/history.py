"""The log in its forms, and single commits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nessie_cli.inspection.changes import ChangeKind, ContentChange
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import NO_ANCESTOR, LogEntry, Reference, ReferenceType
from nessie_cli.render.spans import Cell, Drawn, Hash, Line, Span, text_of, trimmed
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import cells, shorten_end, wrap

_MESSAGE_INDENT = "    "
_LEAST = 16
_SIGNS = {
    ChangeKind.CREATED: "+",
    ChangeKind.UPDATED: "~",
    ChangeKind.DELETED: "-",
    ChangeKind.RENAMED: ">",
}
Detail = tuple[str, Sequence[Cell]]
"""A label and its values, separated by spaces on a terminal."""
_NO_GRAPH = Drawn([], [], [], [])


class LogForm(NamedTuple):
    """The form of a log: a line per commit, the graph, counts, changed keys, or each change.

    `text` returns the text of a commit that a template shows instead of the usual lines.
    """

    oneline: bool = False
    graph: bool = False
    stat: bool = False
    names: bool = False
    patch: bool = False
    text: Callable[[LogEntry], str] | None = None


class LoggedCommit(NamedTuple):
    """A commit and optionally its changes. One that is not `shown` only continues the graph."""

    entry: LogEntry
    changes: Sequence[ContentChange] | None = None
    shown: bool = True


class Names:
    """The references at each commit; `current` is the current reference."""

    def __init__(self, references: Iterable[Reference] = (), current: str | None = None) -> None:
        self._by_hash: dict[str, list[Reference]] = {}
        self._current = current
        for reference in references:
            self._by_hash.setdefault(reference.hash, []).append(reference)

    def at(self, hash: str) -> list[Reference]:
        """Returns the references at a commit, the current one first."""
        return sorted(
            self._by_hash.get(hash, ()), key=lambda reference: reference.name != self._current
        )

    def spans(self, hash: str) -> list[Span]:
        """Returns ` (HEAD -> main, tag: v1)`, or nothing."""
        here = self.at(hash)
        if not here:
            return []
        inner = [span for reference in here for span in (Span(", "), *self._name(reference))]
        return [Span(" ("), *inner[1:], Span(")")]

    def _name(self, reference: Reference) -> list[Span]:
        if reference.type is ReferenceType.TAG:
            return [Span("tag: ", "tag"), Span(reference.name, "tag")]
        if reference.name == self._current:
            return [Span("HEAD -> ", "current"), Span(reference.name, "current")]
        return [Span(reference.name, "name")]


NO_NAMES = Names()


def print_log(
    commits: Iterable[LoggedCommit], form: LogForm, terminal: Terminal, names: Names = NO_NAMES
) -> None:
    """Writes a log while it is read."""
    if form.text is None:
        terminal.print_lines(_log_lines(commits, form, terminal, names), paged=True)
    elif form.graph:
        terminal.print_texts(_beside_graph(commits, form.text, terminal))
    else:
        terminal.print_texts(form.text(commit.entry) for commit in commits)


def _count_line(changes: Iterable[ContentChange]) -> Line:
    """Returns `+2 ~1 -1 >1` for created, updated, deleted, renamed; zeros are left out."""
    counts = Counter(change.kind for change in changes)
    signs = (
        Span(f"{sign}{counts[kind]} ", kind.word) for kind, sign in _SIGNS.items() if counts[kind]
    )
    return list(signs) or [Span("no change", "label")]


def _with_graph(
    commits: Iterable[LoggedCommit], terminal: Terminal
) -> Iterator[tuple[LoggedCommit, Drawn]]:
    """Yields the commits that are shown, each with its graph."""
    from nessie_cli.inspection.graph import Graph
    from nessie_cli.render.graph import ASCII, UNICODE, drawn

    graph, marks = Graph(NO_ANCESTOR), UNICODE if terminal.unicode else ASCII
    for commit in commits:
        entry = commit.entry
        if commit.shown:
            yield commit, drawn(graph.add(entry.hash, entry.meta.parents), marks)
        else:
            graph.skip(entry.hash, entry.meta.parents)


def _beside_graph(
    commits: Iterable[LoggedCommit], text: Callable[[LogEntry], str], terminal: Terminal
) -> Iterator[str]:
    """Yields the text of each commit to the right of its graph."""
    for commit, drawn in _with_graph(commits, terminal):
        first, *others = text(commit.entry).split("\n")
        yield from map(terminal.painted, map(trimmed, drawn.above))
        yield terminal.painted(drawn.own) + first
        yield from map(terminal.painted, map(trimmed, drawn.below))
        yield from (
            terminal.painted(drawn.further if line else trimmed(drawn.further)) + line
            for line in others
        )


def _log_lines(
    commits: Iterable[LoggedCommit], form: LogForm, terminal: Terminal, names: Names
) -> Iterator[Line]:
    if form.graph:
        shown = _with_graph(commits, terminal)
    else:
        shown = ((commit, _NO_GRAPH) for commit in commits if commit.shown)
    first = True
    for commit, drawn in shown:
        yield from map(trimmed, drawn.above)
        if form.oneline:
            yield trimmed(
                [
                    *drawn.own,
                    *_one_line(
                        commit,
                        form,
                        terminal,
                        names,
                        used=sum(cells(span.text) for span in drawn.own),
                    ),
                ]
            )
            yield from map(trimmed, drawn.below)
            prefix = sum(cells(span.text) for span in drawn.further)
            yield from (
                trimmed([*drawn.further, *line])
                for line in _changes(commit, form, terminal, used=prefix)
            )
            continue
        if not first and not form.graph:
            yield []
        first = False
        yield from _next_to_graph(
            drawn,
            _full(
                commit, form, terminal, names, used=sum(cells(span.text) for span in drawn.further)
            ),
            last=form.graph,
        )


def _next_to_graph(drawn: Drawn, text: Iterator[Line], *, last: bool) -> Iterator[Line]:
    """Returns the lines of a commit beside its graph, followed by an empty line of the graph."""
    yield [*drawn.own, *next(text)]
    yield from map(trimmed, drawn.below)
    for line in text:
        yield trimmed([*drawn.further, *line])
    if last:
        yield trimmed(drawn.further)


def _one_line(
    commit: LoggedCommit, form: LogForm, terminal: Terminal, names: Names, used: int
) -> Line:
    hash_ = Span(short_hash(commit.entry.hash), "hash")
    decoration = names.spans(commit.entry.hash)
    stat = (
        [] if commit.changes is None or not form.stat else [Span(" "), *_count_line(commit.changes)]
    )
    taken = used + sum(cells(span.text) for span in (hash_, *decoration, *stat)) + 1
    subject = shorten_end(visible(commit.entry.meta.subject), max(terminal.width - taken, _LEAST))
    return [hash_, *decoration, Span(" "), Span(subject), *stat]


def _full(
    commit: LoggedCommit, form: LogForm, terminal: Terminal, names: Names, used: int
) -> Iterator[Line]:
    """Returns the commit as git shows it, with its changes; the graph takes `used` columns."""
    yield from _heading(commit.entry, terminal, names)
    yield []
    yield from _message(commit.entry, terminal, used)
    if commit.changes is not None and form.stat:
        yield []
        yield [Span(_MESSAGE_INDENT), *_count_line(commit.changes)]
    if commit.changes and (form.names or form.patch):
        yield []
        yield from _changes(commit, form, terminal, used=used)


def _changes(commit: LoggedCommit, form: LogForm, terminal: Terminal, used: int) -> Iterator[Line]:
    """Returns the keys that a commit changed, or each change field by field."""
    if form.patch:
        yield from _patch(commit.changes or (), terminal, used)
    elif form.names:
        yield from _by_letter(commit.changes or ())


def _by_letter(changes: Iterable[ContentChange]) -> Iterator[Line]:
    for change in changes:
        yield [Span(f"{change.kind.value} ", change.kind.word), Span(change.keys, "key")]


def _patch(changes: Iterable[ContentChange], terminal: Terminal, used: int = 0) -> Iterator[Line]:
    from nessie_cli.render.diffs import change_lines

    for change in changes:
        yield from change_lines(change, terminal, used=used)


def _heading(entry: LogEntry, terminal: Terminal, names: Names) -> Iterator[Line]:
    yield [Span(f"commit {short_hash(entry.hash)}", "hash"), *names.spans(entry.hash)]
    yield from _labelled(log_details(entry), terminal)


def _labelled(details: Iterable[Detail], terminal: Terminal) -> Iterator[Line]:
    for label, values in details:
        text = " ".join(text_of(value, terminal.time) for value in values)
        yield [Span(f"{label + ':':<8}", "label"), Span(text)]


def log_details(entry: LogEntry) -> Iterator[Detail]:
    """Yields the details that a log has of a commit: parents of a merge, authors and time."""
    meta = entry.meta
    if len(meta.parents) > 1:
        yield "Merge", list(map(Hash, meta.parents))
    for author in meta.authors or (meta.committer or "",):
        yield "Author", [author]
    yield "Date", [meta.commit_time]


def _message(entry: LogEntry, terminal: Terminal, used: int = 0) -> Iterator[Line]:
    room = terminal.width - used - len(_MESSAGE_INDENT)
    for line in entry.meta.message.rstrip("\n").split("\n"):
        for text in wrap(visible(line), room):
            yield [Span(_MESSAGE_INDENT), Span(text)] if text else []


# -- one commit ------------------------------------------------------------------------------------


def show_lines(
    commit: LoggedCommit, terminal: Terminal, names: Names = NO_NAMES, *, by_letter: bool = False
) -> Iterator[Line]:
    """Returns the lines of a commit with all its metadata and changes.

    The changes are shown field by field, or with `by_letter` as a letter and key.
    """
    yield from _heading(commit.entry, terminal, names)
    yield from _labelled(further_details(commit.entry), terminal)
    yield []
    yield from _message(commit.entry, terminal)
    yield []
    if not commit.changes:
        yield [Span("no content changed", "label")]
    changes = commit.changes or ()
    yield from _by_letter(changes) if by_letter else _patch(changes, terminal)


def further_details(entry: LogEntry) -> Iterator[Detail]:
    """Yields details that the log omits: parent, committer, times, signatures, properties."""
    meta = entry.meta
    if len(meta.parents) <= 1:
        yield "Parent", [Hash(entry.parent)]
    if meta.committer and meta.committer != meta.author:
        yield "Commit", [meta.committer]
    if meta.author_time and meta.author_time != meta.commit_time:
        yield "Wrote", [meta.author_time]
    for signer in meta.signed_off_by:
        yield "Signed", [signer]
    for name, values in sorted(meta.properties.items()):
        for value in values:
            yield "Prop", [f"{name}={value}"]
