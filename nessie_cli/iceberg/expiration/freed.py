"""How many bytes an expiry makes collectable. Reads manifests, and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from msgspec import structs

from nessie_cli.iceberg.expiration.table import ExpiredTable
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.reachable import (
    BrokenFile,
    Found,
    ReferencedFile,
    TableFiles,
    Walker,
    files_in,
)


def freed_bytes(files: Files, expired: ExpiredTable, others: Iterable[str]) -> int | None:
    """Returns the bytes of the files that only removed snapshots name, None if they are unknown.

    These are data files, delete files, manifests and statistics; manifest lists and metadata files
    do not count. `others` are the metadata files of the table at other branches and tags, whose
    files stay. Cost: reads each manifest list and manifest of all of these states once.
    """
    expiration, before, after = expired
    if not expiration.snapshots:
        return 0
    location = expiration.content.metadata_location
    walker = Walker(files)
    try:
        stays = _paths(
            chain(
                walker.below(files_in(after, location), location),
                *(walker.follow(other) for other in others),
            )
        )
        removed = _only(files_in(before, location), set(expiration.snapshots))
        gone = {file.path: file.size for file in _whole(walker.below(removed, location))}
    except BrokenFile:
        return None
    return sum(size for path, size in gone.items() if path not in stays)


def _paths(files: Iterable[Found]) -> set[str]:
    return {file.path for file in _whole(files)}


def _whole(files: Iterable[Found]) -> Iterator[ReferencedFile]:
    """Yields files. Raises the first `BrokenFile`."""
    for file in files:
        if isinstance(file, BrokenFile):
            raise file
        yield file


def _only(table: TableFiles, snapshots: Collection[int]) -> TableFiles:
    """Returns a table with some of its snapshots."""
    return structs.replace(
        table,
        snapshots=tuple(each for each in table.snapshots if each.id in snapshots),
        statistics=tuple(each for each in table.statistics if each[0] in snapshots),
    )
