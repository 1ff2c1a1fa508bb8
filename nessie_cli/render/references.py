"""Branches, tags and the reflog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nessie_cli.model import Reference, ReferenceType, ReflogEntry, Tag
from nessie_cli.render.spans import Column, Row, Span
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import name_of, short_hash

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
    Column("AFTER", "hash"),
    Column("WHEN", "time", "spare"),
    Column("WHO", "author", "spare"),
    Column("VERB"),
    Column("WHY", room="cut"),
)
_NOTHING = "-"
"""The hash after a deletion, and the value of a setting that is not set."""


def print_references(
    references: Iterable[Reference],
    terminal: Terminal,
    *,
    current: str | None = None,
    verbose: bool = False,
    tags: bool = False,
) -> None:
    """Prints names and hashes; `verbose` adds the last commit, and counts of branches.

    The message of a tag replaces that of its commit. A star marks the current reference.
    """
    long = _LONG_OF_TAGS if tags else _LONG
    columns = long if verbose else _SHORT

    def rest(reference: Reference) -> tuple[str, ...]:
        if not verbose:
            return (short_hash(reference.hash),)
        counts = () if tags else _counts(reference)
        return short_hash(reference.hash), *counts, *_last_commit(reference, terminal)

    rows = (_marked(reference, current, rest(reference)) for reference in references)
    terminal.print_table((Column("", "current"), *columns), rows, paged=True)


def _marked(reference: Reference, current: str | None, rest: Sequence[str]) -> Row:
    if reference.name == current:
        return "*", Span(reference.name, "current"), *rest
    return "", Span(reference.name, "tag" if reference.type is ReferenceType.TAG else "name"), *rest


def _counts(reference: Reference) -> tuple[str, ...]:
    metadata = reference.metadata
    counts = (metadata.ahead, metadata.behind) if metadata else (None, None)
    return tuple("" if count is None else str(count) for count in counts)


def _last_commit(reference: Reference, terminal: Terminal) -> tuple[str, str, str]:
    head = reference.metadata.head if reference.metadata else None
    message = reference.message if isinstance(reference, Tag) else None
    subject = message.partition("\n")[0] if message else ""
    if head is None:
        return "", "", subject
    author = name_of(head.author or head.committer or "")
    return terminal.time(head.commit_time), author, subject or head.subject


def print_reflog(entries: Iterable[ReflogEntry], terminal: Terminal) -> None:
    """Prints entries, newest first; `undo --to` accepts their numbers."""
    terminal.print_table(_REFLOG, (_move(entry, terminal) for entry in entries), paged=True)


def _move(entry: ReflogEntry, terminal: Terminal) -> Row:
    message = entry.message
    if entry.setting is not None:
        values = entry.value_before, entry.value_after
        message = " -> ".join(_NOTHING if value is None else value for value in values)
    return (
        str(entry.number),
        entry.reference,
        short_hash(entry.after) if entry.after else _NOTHING,
        terminal.time(entry.time),
        name_of(entry.who),
        entry.operation,
        message,
    )
