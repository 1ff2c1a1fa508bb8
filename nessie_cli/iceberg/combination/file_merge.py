"""The outcome of a merge of the files of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from nessie_cli.iceberg.combination.states import TableFile, VectorUnion


class FileConflict(Struct, frozen=True):
    """Changes of both sides that do not combine, with the files that they are about.

    `rows_may_merge` is whether a merge of the rows by their keys could give the right rows.
    """

    reason: str
    files: Sequence[TableFile] = ()
    rows_may_merge: bool = True


class AddedFile(Struct, frozen=True):
    """A file of theirs for the new snapshot.

    `sequence` is its data sequence number; None stands for that of the new snapshot.
    """

    file: TableFile
    sequence: int | None = None


class FileMerge(Struct, frozen=True):
    """The outcome: what is added to ours and removed from it, or the conflicts.

    `sequence` is the sequence number of the new snapshot. `gone` are digests of data files that
    theirs added and rewrote. `may_skew` is whether one side changed rows, perhaps because of rows
    that the other side has changed. `unions` are deletion vectors that must be read before it is
    known whether they combine: they are not among the other files.
    """

    sequence: int
    added: Sequence[AddedFile] = ()
    removed: Sequence[TableFile] = ()
    gone: Collection[str] = ()
    may_skew: bool = False
    conflicts: Sequence[FileConflict] = ()
    unions: Sequence[VectorUnion] = ()

    @property
    def is_empty(self) -> bool:
        """Whether theirs changes no file of ours."""
        return not (self.added or self.removed or self.conflicts or self.unions)
