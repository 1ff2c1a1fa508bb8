"""The files of a table in one state, and what its snapshots changed since the base.

https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

Row = dict[str, Any]


class FileContent(IntEnum):
    """What a file contains. The numbers are those of manifests."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Identity(NamedTuple):
    """What identifies a file in a snapshot.

    Several deletion vectors are in one file, so they also have an offset and a size.
    """

    path: str
    offset: int | None = None
    size: int | None = None


class TableFile(Struct, frozen=True, eq=False):
    """A live file of a snapshot.

    `sequence` is its data sequence number, and `file_sequence` the number of the commit that added
    it; both are 0 in format version 1. `snapshot_id` is the snapshot that added it. `referenced` is
    the only data file that a delete file is about, if its entry says so. `partition` is hashable.
    `row` is the `data_file` of its manifest entry, whole. `first_row_id` is the id of the first row
    of a data file, None before format version 3 or if its rows have no ids yet.
    """

    identity: Identity
    content: FileContent
    spec_id: int
    partition: tuple[Any, ...]
    records: int
    sequence: int
    file_sequence: int
    snapshot_id: int
    row: Row
    referenced: str | None = None
    manifest: str = ""
    first_row_id: int | None = None

    @property
    def path(self) -> str:
        """The path, as written."""
        return self.identity.path

    @property
    def is_data(self) -> bool:
        """Whether it contains rows of the table."""
        return self.content is FileContent.DATA

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.identity.offset is not None


class VectorUnion(Struct, frozen=True):
    """Deletion vectors of one data file, which one vector with the rows of both sides replaces.

    `base` is the vector of the base, if it has one. With `may_replace_rows`, deleted rows can have
    new versions in other files: a row that both sides deleted would then be a conflict.
    """

    base: TableFile | None
    ours: TableFile
    theirs: TableFile
    may_replace_rows: bool


GONE = "nessie.combined-gone"
"""The member of a snapshot's summary with the digests of files that are gone."""
COMBINED_BY = "nessie.combined-by"
"""The member of a snapshot's summary that names the merge which combined two sides in it."""
ANY_FILE = "*"
"""Stands for the digests of files that are too many to list, or not known."""


def file_digest(path: str) -> str:
    """Returns a short digest of the path of a data file."""
    return hashlib.blake2b(path.encode(), digest_size=8).hexdigest()


class SnapshotChanges(Struct, frozen=True):
    """What one snapshot changed.

    `added` and `removed` are paths of data files. `deleted_in` are those in which it deleted rows
    by their positions. `has_wide_deletes` is whether it also added position deletes that can be
    about any data file, and `equality_deletes` are those that it added. `row_ids` are the ids of
    the first rows of the removed files, and `removed_deletes` the delete files that it removed.
    `gone` are digests of data files whose rows it brought in other files, if it combined two sides:
    the other side had added and rewrote them. `id` is the snapshot id, and `is_combined` whether it
    combined two sides.
    """

    operation: str
    added: Collection[str] = ()
    removed: Collection[str] = ()
    deleted_in: Collection[str] = ()
    has_wide_deletes: bool = False
    row_ids: Mapping[str, int | None] = {}
    removed_deletes: Collection[Identity] = ()
    gone: Collection[str] = ()
    id: int | None = None
    is_combined: bool = False
    equality_deletes: Collection[Identity] = ()

    @property
    def deletes_anywhere(self) -> bool:
        """Whether it added delete files that can be about any data file."""
        return self.has_wide_deletes or bool(self.equality_deletes)


class TableState(Struct, frozen=True):
    """One of the three states of a table.

    `files` are the live files in those manifests that the three states do not share: all others are
    the same in each. `last_sequence` is the last sequence number that the table has given out, and
    `next_row_id` the next id of a row (0 before format version 3). `history` are the snapshots
    that the base does not have, oldest first; None if they do not lead back to the base, because
    one has expired or the table was replaced. In the combination of several merge bases, `lost` are
    the data files that one of them has and that it lacks.
    """

    version: int
    last_sequence: int
    files: Mapping[Identity, TableFile]
    next_row_id: int = 0
    history: Sequence[SnapshotChanges] | None = ()
    is_serializable: bool = False
    lost: Collection[str] | None = None
