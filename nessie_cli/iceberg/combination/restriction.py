"""The state of a side as if it had changed only some of its files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from msgspec import structs

from nessie_cli.iceberg.combination.states import Identity, SnapshotChanges, TableState

T = TypeVar("T", str, Identity)


def restricted(
    base: TableState,
    side: TableState,
    follows: Callable[[Identity], bool],
    unchanged: Collection[Identity],
) -> TableState:
    """Returns a state that differs from the base only in the files for which `follows` is true.

    Its history does not name the files of `unchanged`. It still names files that neither state has:
    their rows can be in any file.
    """
    files = {
        id_: file
        for id_, file in {**base.files, **side.files}.items()
        if id_ in (side.files if follows(id_) else base.files)
    }
    history = side.history
    if history is not None:
        history = [each for each in (_without(c, unchanged) for c in history) if _is_change(each)]
    return structs.replace(side, files=files, history=history)


def _without(changes: SnapshotChanges, files: Collection[Identity]) -> SnapshotChanges:
    """Returns the changes of a snapshot without some files."""
    return structs.replace(
        changes,
        added=_paths(changes.added, files),
        removed=_paths(changes.removed, files),
        deleted_in=_paths(changes.deleted_in, files),
        removed_deletes=[id_ for id_ in changes.removed_deletes if id_ not in files],
        equality_deletes=[id_ for id_ in changes.equality_deletes if id_ not in files],
    )


def _paths(paths: Iterable[str], files: Collection[Identity]) -> list[str]:
    return [path for path in paths if Identity(path) not in files]


def _is_change(changes: SnapshotChanges) -> bool:
    return bool(
        changes.added
        or changes.removed
        or changes.deleted_in
        or changes.deletes_anywhere
        or changes.removed_deletes
        or changes.gone
    )
