"""`--deep`: adds to changes what differs between the metadata files of their Iceberg contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from nessie_cli.iceberg.comparison import compare
from nessie_cli.model import Content, DiffEntry
from nessie_cli.render.changes import Change, Fact, Inside, changes_of

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

FEW = 10_000
"""The largest number of changes that are counted before the first file is read, to show a total."""


def deep_changes(entries: Iterable[DiffEntry], app: Invocation) -> Iterator[Change]:
    """Yields the changes of a few diff entries with the comparisons of their metadata files."""
    return deepen(changes_of(entries), app)


def deepen(changes: Iterable[Change], app: Invocation) -> Iterator[Change]:
    """Yields each change with the comparison of its metadata files, while they are read.

    A file that cannot be read is a problem of its change; the others are read all the same.
    """
    rest = iter(changes)
    first = list(islice(rest, FEW))
    total = len(first) if len(first) < FEW else None
    work = app.at_work("reading metadata files")
    for number, change in enumerate(chain(first, rest)):
        with work as progress:
            progress(number, total)
            found = change._replace(inside=compare_files(change.before, change.after))
        yield found


def compare_files(before: Content | None, after: Content | None) -> Inside:
    """Returns what differs between the metadata files of two contents, and the files that cannot be read."""
    found = compare(before, after)
    return Inside([Fact(fact.what, fact.name, fact.before, fact.after) for fact in found.facts], found.problems)
