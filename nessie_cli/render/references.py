"""Branches, tags and the reflog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nessie_cli.model import Reference, ReferenceType, ReflogEntry, Tag
from nessie_cli.render.spans import Column, Row, Span
from nessie_cli.render.terminal import Terminal

_SHORT = (Column("NAME", "name", "fold"), Column("HASH", "hash"))
_LONG = (
    *_SHORT,
    Column("AHEAD", right=True),
    Column("BEHIND", right=True),
    Column("WHEN", "time", "spare"),
    Column("AUTHOR", "author", "spare"),
    Column("LAST COMMIT", room="cut"),
)
_LONG_OF_TAGS = (*_SHORT, *_LONG[4:-1], Column("MESSAGE", room="cut"))
_REFLOG = (
    Column("NO", right=True),
    Column("REFERENCE", "name", "fold"),
    Column("BEFORE", "hash"),
    Column("AFTER", "hash"),
    Column("WHEN", "time", "spare"),
    Column("WHO", "author", "spare"),
    Column("VERB"),
    Column("WHY", room="cut"),
)
_BEFORE = 2
"""The column that people do not need: the next line of the same reference repeats it."""
_NOWHERE = "-"
"""The text before a creation and after a deletion."""


def print_references(
    references: Iterable[Reference],
    terminal: Terminal,
    *,
    current: str | None = None,
    verbose: bool = False,
    tags: bool = False,
) -> None:
    """Prints names and hashes; `verbose` adds the last commit, and counts of branches.

    The message of a tag replaces that of its commit. On a terminal, a star marks the current
    reference.
    """
    long = _LONG_OF_TAGS if tags else _LONG
    columns = long if verbose else _SHORT

    def rest(reference: Reference) -> tuple[str, ...]:
        if not verbose:
            return (terminal.hash(reference.hash),)
        counts = () if tags else _counts(reference)
        return terminal.hash(reference.hash), *counts, *_last_commit(reference, terminal)

    if not terminal.is_terminal:
        terminal.print_table(columns, ((one.name, *rest(one)) for one in references))
        return
    rows = (_marked(one, current, rest(one)) for one in references)
    terminal.print_table((Column("", "current"), *columns), rows, paged=True)


def _marked(reference: Reference, current: str | None, rest: Sequence[str]) -> Row:
    if reference.name == current:
        return "*", Span(reference.name, "current"), *rest
    return "", Span(reference.name, "tag" if reference.type is ReferenceType.TAG else "name"), *rest


def _counts(reference: Reference) -> tuple[str, ...]:
    found = reference.metadata
    counts = (found.ahead, found.behind) if found else (None, None)
    return tuple("" if count is None else str(count) for count in counts)


def _last_commit(reference: Reference, terminal: Terminal) -> tuple[str, str, str]:
    head = reference.metadata.head if reference.metadata else None
    message = reference.message if isinstance(reference, Tag) else None
    subject = message.partition("\n")[0] if message else ""
    if head is None:
        return "", "", subject
    author = terminal.person(head.author or head.committer or "")
    return terminal.time(head.commit_time), author, subject or head.subject


def print_reflog(entries: Iterable[ReflogEntry], terminal: Terminal) -> None:
    """Prints entries, newest first; `undo --to` accepts their numbers."""
    skipped = (_BEFORE,) if terminal.is_terminal else ()
    columns = [column for number, column in enumerate(_REFLOG) if number not in skipped]
    rows = (
        [cell for number, cell in enumerate(_move(entry, terminal)) if number not in skipped]
        for entry in entries
    )
    terminal.print_table(columns, rows, paged=True)


def _move(entry: ReflogEntry, terminal: Terminal) -> Sequence[str]:
    before, after = (
        terminal.hash(where) if where else _NOWHERE for where in (entry.before, entry.after)
    )
    message = entry.message
    if entry.setting is not None:
        values = entry.value_before, entry.value_after
        message = " -> ".join(_NOWHERE if value is None else value for value in values)
    who = terminal.person(entry.who)
    return (
        str(entry.number),
        entry.reference,
        before,
        after,
        terminal.time(entry.time),
        who,
        entry.operation,
        message,
    )
