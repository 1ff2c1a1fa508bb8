"""Branches, tags and the reflog."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.model import Reference, ReferenceType, ReflogEntry, described_setting
from nessie_cli.render.spans import Column, Hash, Person, Row, Span, Table

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


def references_table(
    references: Iterable[Reference],
    *,
    current: str | None = None,
    verbose: bool = False,
    tags: bool = False,
) -> Table:
    """Returns names and hashes; `verbose` adds the last commit, and counts of branches.

    The message of a tag replaces that of its commit. A star marks the current reference.
    """
    long = _LONG_OF_TAGS if tags else _LONG
    columns = long if verbose else _SHORT

    def rest(reference: Reference) -> Row:
        if not verbose:
            return (Hash(reference.hash),)
        counts = () if tags else _counts(reference)
        return Hash(reference.hash), *counts, *_last_commit(reference)

    rows = (_marked(reference, current, rest(reference)) for reference in references)
    return Table((Column("", "current"), *columns), rows)


def _marked(reference: Reference, current: str | None, rest: Row) -> Row:
    if reference.name == current:
        return "*", Span(reference.name, "current"), *rest
    return "", Span(reference.name, "tag" if reference.type is ReferenceType.TAG else "name"), *rest


def _counts(reference: Reference) -> Row:
    metadata = reference.metadata
    return (metadata.ahead, metadata.behind) if metadata else (None, None)


def _last_commit(reference: Reference) -> Row:
    from nessie_cli.inspection.references import last_commit

    last = last_commit(reference)
    return last.time, Person(last.author), last.subject


def reflog_table(entries: Iterable[ReflogEntry]) -> Table:
    """Returns a row for each entry; `undo --to` accepts their numbers."""
    return Table(_REFLOG, map(_move, entries))


def _move(entry: ReflogEntry) -> Row:
    message = entry.message
    if entry.setting is not None:
        name, values = entry.setting, (entry.value_before, entry.value_after)
        message = " -> ".join(
            _NOTHING if value is None else described_setting(name, value) for value in values
        )
    return (
        entry.number,
        entry.reference,
        Hash(entry.after) if entry.after else _NOTHING,
        entry.time,
        Person(entry.who),
        entry.operation,
        message,
    )
