"""The keys of a catalog: a table, a tree, and the last change of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nessie_cli.model import (
    CommitMeta,
    Content,
    Entry,
    IcebergTable,
    IcebergView,
    type_label,
)
from nessie_cli.render.spans import Column, Hash, Line, Person, Span, Table

_SHORT = (Column("KEY", "key", "fold"), Column("TYPE"), Column("CONTENT ID", "hash", "spare"))
_LONG = (*_SHORT, Column("CONTENT", "", "cut"))
_LAST_CHANGES = (
    Column("KEY", "key", "fold"),
    Column("COMMIT", "hash"),
    Column("WHEN", "time", "spare"),
    Column("AUTHOR", "author", "spare"),
    Column("SUBJECT", room="cut"),
)


def entries_table(entries: Iterable[Entry], *, verbose: bool = False) -> Table:
    """Returns a row for each key; `verbose` adds a summary of its content."""
    rows = ((str(entry.key), type_label(entry.type), entry.content_id) for entry in entries)
    if not verbose:
        return Table(_SHORT, rows)
    long_rows = (
        (str(entry.key), type_label(entry.type), entry.content_id, _without_type(entry))
        for entry in entries
    )
    return Table(_LONG, long_rows)


def _without_type(entry: Entry) -> str:
    """Summarizes a content without its type, which has its own column."""
    return summary(entry.content).removeprefix(type_label(entry.type)).lstrip()


def summary(content: Content | None) -> str:
    """Summarizes a content: its type, and the number that identifies its version."""
    if content is None:
        return "-"
    label = type_label(content.type_name)
    if isinstance(content, IcebergTable):
        return f"{label} snapshot {content.snapshot_id}"
    return f"{label} version {content.version_id}" if isinstance(content, IcebergView) else label


def last_changes_table(changes: Iterable[tuple[Entry, CommitMeta]]) -> Table:
    """Returns a row for each key, with the commit that last changed it."""
    rows = (
        (
            str(entry.key),
            Hash(meta.hash or ""),
            meta.commit_time,
            Person(meta.author or meta.committer or ""),
            meta.subject,
        )
        for entry, meta in changes
    )
    return Table(_LAST_CHANGES, rows)


def tree_lines(entries: Iterable[Entry]) -> Iterator[Line]:
    """Yields a line for each key and namespace, indented below the namespace above it."""
    from nessie_cli.inspection.contents import tree_rows

    for depth, name, entry in tree_rows(entries):
        style, label = ("key", f"  {type_label(entry.type)}") if entry else ("label", "")
        yield [Span("  " * depth), Span(name, style), Span(label)]
