"""The base of two sides with several merge bases: what these give together, in memory.

Each of two branches can have merged an older state of the other. A side then contains the changes
of all merge bases, so only what differs from their combination is a change of the side. That holds
if its snapshots explain each difference. Otherwise the branches did not combine the same states:
one of them took a side of the table as a whole, or took changes back.

https://git-scm.com/docs/merge-strategies
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import structs

from nessie_cli.iceberg.combination.file_merge import FileMerge
from nessie_cli.iceberg.combination.states import (
    Identity,
    SnapshotChanges,
    TableFile,
    TableState,
)

Files = Mapping[Identity, TableFile]


def merged_state(
    base: TableState, ours: TableState, theirs: TableState, merge: FileMerge
) -> TableState:
    """Returns the state that two merge bases give together.

    `merge` is their merge, without conflicts and without unions of vectors. Sequence numbers and
    ids of rows are those that the files have in one of them.
    """
    removed = {file.identity for file in merge.removed}
    files = {id_: file for id_, file in ours.files.items() if id_ not in removed}
    files |= {each.file.identity: each.file for each in merge.added}
    data = {f.path for state in (base, ours, theirs) for f in state.files.values() if f.is_data}
    lost = frozenset(path for path in data if Identity(path) not in files).union(base.lost or ())
    return TableState(
        ours.version,
        max(ours.last_sequence, theirs.last_sequence),
        without_dangling(files, lost),
        min(ours.next_row_id, theirs.next_row_id),
        is_serializable=any(state.is_serializable for state in (base, ours, theirs)),
        lost=lost,
    )


def without_dangling(files: Files, lost: Collection[str]) -> dict[Identity, TableFile]:
    """Returns files without the deletes in data files that are `lost` and not among them.

    A combination leaves some of them out, depending on its direction.
    """
    return {
        id_: file
        for id_, file in files.items()
        if file.referenced not in lost or Identity(str(file.referenced)) in files
    }


def own_changes(history: Iterable[SnapshotChanges], base: TableState) -> Iterator[SnapshotChanges]:
    """Yields the changes of a side that its merge bases do not have, without empty ones."""
    added = set[str]()
    for changes in history:
        added.update(changes.added)
        own = structs.replace(
            changes,
            removed=[p for p in changes.removed if p in added or Identity(p) in base.files],
        )
        if (
            own.added
            or own.removed
            or own.deleted_in
            or own.deletes_anywhere
            or any(id_ in base.files for id_ in own.removed_deletes)
        ):
            yield own


def unexplained(base: TableState, side: TableState) -> list[TableFile]:
    """Returns the files of a side, or of its base, whose difference no snapshot of it explains."""
    if side.history is None:
        return list(side.files.values())
    snapshots = {changes.id for changes in side.history}
    added = {path for changes in side.history for path in changes.added}
    removed = {Identity(path) for changes in side.history for path in changes.removed}
    removed.update(id_ for changes in side.history for id_ in changes.removed_deletes)
    new = (
        file
        for id_, file in side.files.items()
        if id_ not in base.files
        and (file.path not in added if file.is_data else file.snapshot_id not in snapshots)
    )
    gone = (
        file
        for id_, file in base.files.items()
        if removed.isdisjoint({id_, Identity(str(file.referenced))}) and id_ not in side.files
    )
    return [*new, *gone]
