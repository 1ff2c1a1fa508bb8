"""`--deep`: compares the metadata files of changed Iceberg contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nessie_cli.iceberg.files import Files
from nessie_cli.inspection.changes import ContentChange, changes_of
from nessie_cli.inspection.metadata import Read, metadata_reader, with_metadata
from nessie_cli.model import DiffEntry
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


def deep_changes(entries: Iterable[DiffEntry], app: Invocation) -> Iterator[ContentChange]:
    """Yields the changes of a few diff entries with the comparisons of their metadata files."""
    return deepen(changes_of(entries), app)


def deepen(
    changes: Iterable[ContentChange], app: Invocation, read: Read | None = None
) -> Iterator[ContentChange]:
    """Yields each change with the comparison of its metadata files, and shows the progress."""
    work = app.at_work("reading metadata files")
    return with_metadata(changes, read or user_files_reader(), work)


def user_files_reader() -> Read:
    """Returns a cached reader of metadata files with the user's settings and a timeout."""
    return metadata_reader(Files(of_s3()))
