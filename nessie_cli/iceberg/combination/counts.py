"""The numbers of files and rows that a combination adds to ours and removes from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nessie_cli.iceberg.combination.file_merge import FileMerge
from nessie_cli.iceberg.combination.states import FileContent
from nessie_cli.iceberg.combination.unions import UnitedVector
from nessie_cli.model import TableCombination


def counts_of_files(
    files: FileMerge, vectors: Sequence[UnitedVector] = (), notes: Sequence[str] = ()
) -> TableCombination:
    """Returns what a merge of files adds to ours and removes from it."""
    added, removed = [each.file for each in files.added], files.removed
    new, gone = ({f.path: f.records for f in fs if f.is_data} for fs in (added, removed))
    deleted = Counter[str | None]()
    for changed, sign in ((added, 1), (removed, -1)):
        for file in changed:
            if file.content is FileContent.POSITION_DELETES:
                deleted[file.referenced] += sign * file.records
    for vector in vectors:
        deleted[vector.theirs.referenced] += len(vector.positions)
    added_rows, removed_rows = sum(new.values()), sum(gone.values())
    for path, rows in deleted.items():
        # A data file comes or goes without its deleted rows. In others, rows go or come back.
        if path in gone or (path not in new and rows > 0):
            removed_rows += rows
        else:
            added_rows -= rows
    equality, undone = (
        any(f.content is FileContent.EQUALITY_DELETES for f in fs) for fs in (added, removed)
    )
    return TableCombination(
        len(added) + len(vectors),
        len(removed),
        None if undone or (equality and new) else added_rows,
        None if equality or (undone and gone) else removed_rows,
        tuple(notes),
    )
