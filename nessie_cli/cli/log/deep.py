"""`--deep`: compares the metadata files of changed Iceberg contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from nessie_cli.iceberg.comparison import compare
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import Document, parse_document
from nessie_cli.model import Content, DiffEntry
from nessie_cli.render.changes import ContentChange, Fact, Inside, changes_of
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

FEW = 10_000
"""Up to this number of changes are counted before the first file is read, to show a total."""
KEPT = 2
"""The number of cached metadata files. A log uses the state of a table twice."""


Read = Callable[[str], Document]
"""A function that reads a metadata file."""


def deep_changes(entries: Iterable[DiffEntry], app: Invocation) -> Iterator[ContentChange]:
    """Yields the changes of a few diff entries with the comparisons of their metadata files."""
    return deepen(changes_of(entries), app)


def deepen(
    changes: Iterable[ContentChange], app: Invocation, read: Read | None = None
) -> Iterator[ContentChange]:
    """Yields each change with the comparison of its metadata files, while they are read.

    A file that cannot be read is reported as a problem of its change; the others are still read.
    """
    read = read or metadata_reader()
    rest = iter(changes)
    first = list(islice(rest, FEW))
    total = len(first) if len(first) < FEW else None
    work = app.at_work("reading metadata files")
    for number, change in enumerate(chain(first, rest)):
        with work as progress:
            progress(number, total)
            found = change._replace(inside=compare_files(change.before, change.after, read))
        yield found


def metadata_reader() -> Read:
    """Returns a cached reader of metadata files, with a timeout for the file system."""
    files = Files(of_s3())

    @lru_cache(KEPT)
    def read(location: str) -> Document:
        return parse_document(files.read(location), location)

    return read


def compare_files(before: Content | None, after: Content | None, read: Read) -> Inside:
    """Compares the metadata files of two contents, and returns the files that cannot be read."""
    found = compare(before, after, read)
    return Inside(
        [Fact(fact.what, fact.name, fact.before, fact.after) for fact in found.facts],
        found.problems,
    )
