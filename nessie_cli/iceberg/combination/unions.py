"""Unions of deletion vectors (format version 3): both sides deleted rows of one data file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.file_merge import FileConflict, FileMerge
from nessie_cli.iceberg.combination.states import Identity, TableFile, VectorUnion
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.vectors import read_vector

MOST_BYTES = 64 * 2**20
"""The limit for the vectors of one merge. A vector of 10 million scattered rows has 20 MB."""


class UnitedVector(Struct, frozen=True):
    """A new vector. It replaces that of ours, and `theirs`, the vector of theirs."""

    theirs: TableFile
    positions: BitMap64


def read_vectors(
    unions: Iterable[VectorUnion], read: Callable[[str], bytes], most: int
) -> dict[Identity, BitMap64]:
    """Returns the positions in the vectors that are to be united. Reads each file once.

    Raises `InvalidInput` if a vector is damaged or has more than `most` bytes, or if all are too
    large, and the errors of `read`.
    """
    vectors = {
        file.identity: file
        for union in unions
        for file in (union.base, union.ours, union.theirs)
        if file is not None
    }
    for file in vectors.values():
        if _place_of(file)[1] > most:
            raise InvalidInput(
                f"{shown(file.path)} has a deletion vector of more than {most // 2**10} KiB"
            )
    if sum(id_.size or 0 for id_ in vectors) > MOST_BYTES:
        raise InvalidInput(
            "the deletion vectors of the files in which both sides deleted rows have more than"
            f" {MOST_BYTES // 2**20} MiB"
        )
    by_path: dict[str, list[TableFile]] = {}
    for file in vectors.values():
        by_path.setdefault(file.path, []).append(file)
    positions = {}
    for path, files in by_path.items():
        data = read(path)
        for file in files:
            offset, size = _place_of(file)
            positions[file.identity] = read_vector(data[offset : offset + size], file)
    return positions


def _place_of(vector: TableFile) -> tuple[int, int]:
    """Returns the offset and size of a vector. Raises `InvalidInput` if it has none."""
    path, offset, size = vector.identity
    if offset is None or size is None or offset < 0 or size < 0:
        raise InvalidInput(f"{shown(path)} has a deletion vector without a place")
    return offset, size


def unite(
    merge: FileMerge, positions: Mapping[Identity, BitMap64]
) -> tuple[FileMerge, list[UnitedVector]]:
    """Returns a merge with its unions made, and the vectors to be written for it.

    The rows deleted afterwards are those of ours, and those that theirs has deleted since the base.
    A vector of ours that already has all these rows stays.
    """
    conflicts = []
    removed = list(merge.removed)
    vectors = []
    for union in merge.unions:
        before = BitMap64() if union.base is None else positions[union.base.identity]
        ours, theirs = positions[union.ours.identity], positions[union.theirs.identity]
        files = [union.theirs, union.ours]
        if not (before <= ours and before <= theirs):
            conflicts.append(
                FileConflict(
                    "one side took deletions back, and the other one changed their files", files
                )
            )
        elif union.may_replace_rows and ours & theirs != before:
            conflicts.append(FileConflict("both sides changed the same rows of one file", files))
        elif theirs <= ours:
            continue
        else:
            # Not the vector of theirs, even if it has all rows: a later merge would take ours and
            # theirs for one change, but ours can have a new version of a row that theirs deleted.
            removed.append(union.ours)
            vectors.append(UnitedVector(union.theirs, ours | theirs))
    if conflicts:
        return FileMerge(merge.sequence, conflicts=conflicts), []
    return structs.replace(merge, removed=removed, unions=()), vectors
