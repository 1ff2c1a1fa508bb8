"""Branches, tags and where they have been."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nessie_cli.model import Reference, ReferenceType, ReflogEntry
from nessie_cli.render.terminal import Column, Row, Span, Terminal

_SHORT = (Column("NAME", "name", "fold"), Column("HASH", "hash"))
_LONG = (
    *_SHORT,
    Column("AHEAD", right=True),
    Column("BEHIND", right=True),
    Column("WHEN", "time"),
    Column("AUTHOR", "author", "cut"),
    Column("LAST COMMIT", room="cut"),
)
_REFLOG = (
    Column("NO", right=True),
    Column("REFERENCE", "name", "fold"),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
    Column("WHEN", "time"),
    Column("WHO", "author", "cut"),
    Column("VERB"),
    Column("WHY", room="cut"),
)
_NOWHERE = "-"
"""Stands where a reference did not exist, before its creation or after its deletion."""


def print_references(references: Iterable[Reference], terminal: Terminal, *, current: str | None = None, verbose: bool = False) -> None:
    """Names and hashes; `verbose` adds how far ahead and behind of the default branch each is, and its last commit.

    On a terminal a star marks the current one.
    """
    columns = _LONG if verbose else _SHORT
    if not terminal.is_terminal:
        terminal.print_table(columns, ((reference.name, *_rest(reference, terminal, verbose=verbose)) for reference in references))
        return
    rows = (_marked(reference, current, _rest(reference, terminal, verbose=verbose)) for reference in references)
    terminal.print_table((Column("", "current"), *columns), rows, paged=True)


def _marked(reference: Reference, current: str | None, rest: Sequence[str]) -> Row:
    if reference.name == current:
        return "*", Span(reference.name, "current"), *rest
    return "", Span(reference.name, "tag" if reference.type is ReferenceType.TAG else "name"), *rest


def _rest(reference: Reference, terminal: Terminal, *, verbose: bool) -> tuple[str, ...]:
    hash_ = terminal.hash(reference.hash)
    if not verbose:
        return (hash_,)
    found = reference.metadata
    head = found.head if found else None
    ahead, behind = ("" if count is None else str(count) for count in ((found.ahead, found.behind) if found else (None, None)))
    if head is None:
        return hash_, ahead, behind, "", "", ""
    return hash_, ahead, behind, terminal.time(head.commit_time), head.author or head.committer or "", head.subject


def print_reflog(entries: Iterable[ReflogEntry], terminal: Terminal) -> None:
    """Moves, newest first; the number is what `undo --to` takes."""
    terminal.print_table(_REFLOG, (_move(entry, terminal) for entry in entries), paged=True)


def _move(entry: ReflogEntry, terminal: Terminal) -> Sequence[str]:
    before, after = (terminal.hash(where) if where else _NOWHERE for where in (entry.before, entry.after))
    return str(entry.number), entry.reference, before, after, terminal.time(entry.time), entry.who, entry.operation, entry.message
