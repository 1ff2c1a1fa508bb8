"""Decides how the files of two sides of a table combine. Reads nothing.

The result is ours without the files that theirs removed, with the files that theirs added. Each
rule names a pair of changes, one of each side, that would give wrong rows: then the merge is a
conflict. It is also one if the entries of manifests do not tell enough.

https://iceberg.apache.org/spec/#scan-planning
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

from nessie_cli.iceberg.builder.document import ROW_LINEAGE
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.file_merge import AddedFile, FileConflict, FileMerge
from nessie_cli.iceberg.combination.identifiers import MOST_PAIRS
from nessie_cli.iceberg.combination.merged_base import unexplained
from nessie_cli.iceberg.combination.side_changes import SideChanges
from nessie_cli.iceberg.combination.states import (
    ANY_FILE,
    FileContent,
    Identity,
    TableFile,
    TableState,
    VectorUnion,
    file_digest,
)


def merge_files(
    base: TableState,
    ours: TableState,
    theirs: TableState,
    fork_sequence: int,
    *,
    has_equality_deletes: bool = True,
    scope: EqualityScope | None = None,
) -> FileMerge:
    """Merges the files of two sides.

    `fork_sequence` is the last sequence number that means the same on both sides. The base can be a
    later state of theirs: that before a picked commit. `has_equality_deletes` is whether there can
    be some that are not older than the fork. `scope` says which rows they can reach: by default,
    all in their partitions. Costs the number of given files, and of pairs of files that are
    compared for equality deletes.
    """
    merge = _Merge(
        base,
        ours,
        theirs,
        fork_sequence,
        scope or EqualityScope([]),
        has_equality_deletes=has_equality_deletes,
    )
    return merge.result()


class _Merge:
    def __init__(
        self,
        base: TableState,
        ours: TableState,
        theirs: TableState,
        fork_sequence: int,
        scope: EqualityScope,
        *,
        has_equality_deletes: bool,
    ) -> None:
        self._base = base
        self._fork = fork_sequence
        self._scope = scope
        self._has_equality_deletes = has_equality_deletes
        self._ours, self._theirs = (SideChanges(base, side, scope) for side in (ours, theirs))
        ahead = theirs.last_sequence - fork_sequence
        self._shift = ours.last_sequence - fork_sequence
        self._sequence = ours.last_sequence + max(1, ahead) if ours.version > 1 else 0

    def result(self) -> FileMerge:
        conflicts = list(self._conflicts())
        if conflicts:
            return FileMerge(self._sequence, conflicts=conflicts)
        return FileMerge(
            self._sequence,
            list(self._added()),
            list(self._removed()),
            self._gone(),
            bool(self._dependent_files()),
            unions=list(self._unions.values()),
        )

    # -- conflicts -----------------------------------------------------------------------------

    def _conflicts(self) -> Iterator[FileConflict]:
        yield from self._versions()
        yield from self._damaged()
        yield from self._merged_base()
        yield from self._isolation()
        yield from self._double_removals()
        yield from self._merged_before()
        yield from self._lost_twice()
        yield from self._double_restorations()
        yield from self._removed_and_changed(self._theirs, self._ours)
        yield from self._removed_and_changed(self._ours, self._theirs)
        yield from self._double_deletes()
        yield from self._undone_deletes()
        yield from self._equality_deletes()
        yield from self._kept_numbers()
        yield from self._row_ids()

    def _versions(self) -> Iterator[FileConflict]:
        before, here, there = (
            state.version for state in (self._base, self._ours.state, self._theirs.state)
        )
        if here != there:
            # A merge of rows leaves ours as it is, so it would lose an upgrade of theirs.
            yield FileConflict(
                "one side changed the format version", rows_may_merge=there <= max(before, here)
            )
        old = [file for file in self._theirs.added_deletes if not file.is_vector]
        if old and self._ours.state.version >= ROW_LINEAGE:
            yield FileConflict(
                "theirs added or restored position delete files, which format version 3 does not"
                " allow",
                old,
            )

    def _damaged(self) -> Iterator[FileConflict]:
        """Two different files with one path are damage, and not a change."""
        for id_, file in self._theirs.state.files.items():
            other = self._ours.state.files.get(id_) or self._base.files.get(id_)
            if other is not None and _form(other) != _form(file):
                reason = "the two sides describe this file differently"
                yield FileConflict(reason, [file], rows_may_merge=False)

    def _merged_base(self) -> Iterator[FileConflict]:
        """With several merge bases, each side has the changes of all of them, and own ones."""
        if self._base.lost is None:
            return
        if self._has_equality_deletes:
            yield FileConflict("the branches have several merge bases, and equality deletes since")
        for side, name in ((self._ours, "ours"), (self._theirs, "theirs")):
            if files := unexplained(self._base, side.state):
                yield FileConflict(
                    f"the branches have several merge bases, and {name} does not have the changes"
                    " of all of them",
                    files,
                )

    def _isolation(self) -> Iterator[FileConflict]:
        """Serializable: an overwrite may depend on rows that the other side added or deleted."""
        states = (self._base, self._ours.state, self._theirs.state)
        if any(state.is_serializable for state in states) and (files := self._dependent_files()):
            yield FileConflict(
                "the table is serializable, and one side changed rows while the other one added"
                " rows or deletes",
                files,
                rows_may_merge=False,
            )

    def _dependent_files(self) -> list[TableFile]:
        """Returns the added files of a side on which changed rows of the other side may depend."""
        for side, other in ((self._ours, self._theirs), (self._theirs, self._ours)):
            files = [f for f in other.added if f.path not in other.compacted]
            if side.changed_rows and files:
                return files
        return []

    def _double_removals(self) -> Iterator[FileConflict]:
        ours, theirs = self._ours, self._theirs
        for path, file in theirs.removed_data.items():
            if path not in ours.removed_data:
                continue
            if not (ours.is_dropped(path) and theirs.is_dropped(path)):
                yield FileConflict("both sides removed or rewrote this file", [file])

    def _merged_before(self) -> Iterator[FileConflict]:
        """The other side had a file before: its rows were deleted there, or are in other files."""
        ours, theirs = self._ours, self._theirs
        for side, other, name in ((ours, theirs, "ours"), (theirs, ours, "theirs")):
            if side.state.history is None and other.added_data:
                yield FileConflict(
                    f"the snapshots of {name} do not lead back to the base, so its files may"
                    " contain rows that the other side added",
                    side.added_data,
                )
            elif again := [file for file in other.added_data if side.has_had(file)]:
                yield FileConflict(f"{name} had these files, and removed or rewrote them", again)

    def _lost_twice(self) -> Iterator[FileConflict]:
        """Both sides had the same new file, by a pick for example, and have its rows elsewhere."""
        ours, theirs = self._ours, self._theirs
        lost = _both(ours.gone, theirs.gone).difference(
            file_digest(id_.path)
            for state in (self._base, ours.state, theirs.state)
            for id_ in state.files
        )
        if lost and (heirs := ours.heirs(lost, theirs) | theirs.heirs(lost, ours)):
            yield FileConflict(
                "both sides had data files that the base does not have, and removed or rewrote"
                " them",
                [file for file in (*ours.added_data, *theirs.added_data) if file.path in heirs],
            )

    def _double_restorations(self) -> Iterator[FileConflict]:
        """The changes of each side to rows that both restored are not known."""
        ours, theirs = self._ours, self._theirs
        if (
            ours.restored_files
            and theirs.restored_files
            and ours.state.files.keys() != theirs.state.files.keys()
        ):
            yield FileConflict("both sides were rolled back", theirs.added_data)
            return
        for side, other in ((ours, theirs), (theirs, ours)):
            if side.restored_files and (combined := other.files_restored_by_combinations):
                yield FileConflict(
                    "one side restored files, and the other one can have their rows in other files",
                    combined,
                )
                return
        here, there = (self._restored(side) for side in (ours, theirs))
        if here and there and here.keys() != there.keys():
            yield FileConflict(
                "both sides took changes back: they can have restored different versions of rows",
                [*here.values(), *there.values()],
            )

    def _restored(self, side: SideChanges) -> dict[Identity, TableFile]:
        """Returns the data files that came back on a side, and the deletes that it took back."""
        return {
            file.identity: file
            for file in [*side.added_data, *side.undone_deletes]
            if not file.is_data
            or file.path not in side.ever_added
            or (0 < file.sequence <= self._fork and file.path not in side.compacted)
        }

    def _removed_and_changed(self, side: SideChanges, other: SideChanges) -> Iterator[FileConflict]:
        """A deletion of rows in a file that the other side rewrote would be lost.

        An updated row of a file that the other side dropped would come back.
        """
        # Equality deletes reach compacted rows, too.
        moved = self._moved(other)
        for path, file in other.removed_data.items():
            deletes = [*side.deletes_by_file.get(path, []), *side.wide_deletes]
            is_updated = side.is_updated(path, by_equality=path not in moved)
            if is_updated or (deletes and not other.is_dropped(path)):
                yield FileConflict(
                    "one side changed rows of this file, and the other one removed or rewrote it",
                    [file, *deletes],
                )

    def _double_deletes(self) -> Iterator[FileConflict]:
        """Two deletions in one file can be two changes of one row, which would then exist twice."""
        ours, theirs = self._ours, self._theirs
        for path, deletes in theirs.deletes_by_file.items():
            if path in self._unions:
                continue
            others = ours.deletes_by_file.get(path, [])
            new = [file for file in deletes if file.identity not in ours.state.files]
            if new and others and not self._are_only_deletions(path):
                yield FileConflict("both sides deleted rows of one file", [*new, *others])
        for side, other in ((ours, theirs), (theirs, ours)):
            if side.wide_deletes and other.added_deletes and not self._are_only_deletions():
                yield FileConflict(
                    "both sides deleted rows, and the entries do not say of which files",
                    [*side.wide_deletes, *other.added_deletes],
                )
                return

    def _are_only_deletions(self, path: str | None = None) -> bool:
        """Returns whether no deleted row of a data file, or of any, can have a new version.

        The files with positions of both sides are then valid together, even if some are equal.
        Vectors are not: a data file has one.
        """
        ours, theirs = self._ours, self._theirs
        return ours.state.version < ROW_LINEAGE and not any(
            side.may_replace_rows(each)
            for side in (ours, theirs)
            # Wide deletes can be about any file.
            for each in ([path] if path is not None else side.deletes_by_file or [""])
        )

    def _undone_deletes(self) -> Iterator[FileConflict]:
        """Rows came back in a file, and the other side's files for it do not have them."""
        for side, other in ((self._ours, self._theirs), (self._theirs, self._ours)):
            undone = [
                file
                for file in side.undone_deletes
                if other.touches_rows(file)
                and not (file.is_vector and file.referenced in self._unions)
            ]
            if undone:
                yield FileConflict(
                    "one side took deletions back, and the other one changed their files", undone
                )

    def _equality_deletes(self) -> Iterator[FileConflict]:
        """Equality deletes reach all files with smaller sequence numbers, also new ones."""
        ours, theirs = self._ours, self._theirs
        for side, other in ((ours, theirs), (theirs, ours)):
            if side.removed_equality_deletes and (other.added or other.removed):
                yield FileConflict(
                    "one side removed equality deletes, and the other one changed files",
                    side.removed_equality_deletes,
                )
        yield from self._deletes_of_theirs()
        reached = [
            file
            for file in theirs.state.files.values()
            if file.is_data
            and (present := ours.state.files.get(file.identity)) is not None
            and any(
                (file.sequence < deletes.sequence)
                is not (present.sequence < (self._number(deletes) or 0))
                for deletes in theirs.equality_deletes
            )
        ]
        if reached:
            # A merge or pick has given a file other numbers on one side than on the other.
            yield FileConflict(
                "the equality deletes of theirs would reach rows that they do not reach there",
                [*theirs.equality_deletes, *reached],
            )
        yield from self._double_changes()
        yield from self._deletes_of_ours()

    def _deletes_of_theirs(self) -> Iterator[FileConflict]:
        """They get numbers above those of all files of ours, so they reach new files, too."""
        ours, theirs = self._ours, self._theirs
        changed = [*self._not_compacted(ours), *self._rewritten(ours)]
        if reached := self._reached(theirs.equality_deletes, changed):
            yield FileConflict(
                "the equality deletes of theirs would reach rows that ours changed",
                [*theirs.equality_deletes, *reached],
            )

    def _deletes_of_ours(self) -> Iterator[FileConflict]:
        """They do not reach the files of theirs, which get larger numbers if they are new."""
        ours, theirs = self._ours, self._theirs
        rewritten = [
            file
            for file in self._not_compacted(theirs)
            if file.sequence <= self._fork
            or theirs.is_restored(file)
            or self._carries_old_rows(file)
        ]
        if reached := self._reached(ours.equality_deletes, [*self._rewritten(theirs), *rewritten]):
            yield FileConflict(
                "the equality deletes of ours would miss rows of files that theirs rewrote",
                [*ours.equality_deletes, *reached],
            )

    def _moved(self, side: SideChanges) -> Mapping[str, Sequence[TableFile]]:
        """Returns the files of the base that a side only compacted, with their new files.

        All rows are older than the fork, so equality deletes of the other side reach all of them
        before and after the compaction.
        """
        other = self._theirs if side is self._ours else self._ours
        if any(file.sequence <= self._fork for file in other.equality_deletes):
            return {}
        return {
            path: files
            for path, files in side.moved.items()
            if self._base.files[Identity(path)].sequence <= self._fork
            and (present := other.state.files.get(Identity(path))) is not None
            and present.sequence <= self._fork
        }

    def _rewritten(self, side: SideChanges) -> list[TableFile]:
        """Returns the files of the base whose rows, or new versions of them, are in new files."""
        moved = self._moved(side)
        return [
            file
            for path, file in side.removed_data.items()
            if path not in moved and not side.is_dropped(path)
        ]

    def _not_compacted(self, side: SideChanges) -> list[TableFile]:
        """Returns the added data files that do not only have rows of compacted files."""
        compacted = self._compacted(side)
        return [file for file in side.added_data if file.path not in compacted]

    def _compacted(self, side: SideChanges) -> set[str]:
        """Returns the added data files with rows of compacted files of the base only."""
        moved = self._moved(side)
        others = [files for path, files in side.moved.items() if path not in moved]
        mixed = {file.path for files in others for file in files}
        return {file.path for files in moved.values() for file in files} - mixed

    def _double_changes(self) -> Iterator[FileConflict]:
        """A row that both sides delete can have a new version on each, or on one of them."""
        sides = self._ours, self._theirs
        if not any(side.added_data or side.has_updates for side in sides):
            return
        for side, other in (sides, sides[::-1]):
            deletes = [*other.added_deletes, *other.equality_deletes]
            if collided := _matches(side.equality_deletes, deletes, self._may_delete_one_row):
                yield FileConflict(
                    "both sides changed rows, one by equality deletes",
                    [*side.equality_deletes, *collided],
                )
                return

    def _may_delete_one_row(self, equality: TableFile, deletes: TableFile) -> bool:
        if deletes.content is FileContent.EQUALITY_DELETES:
            return self._scope.meets(equality, deletes)
        states = self._base, self._ours.state, self._theirs.state
        target = Identity(deletes.referenced or "")
        files = [state.files[target] for state in states if target in state.files]
        # It is unknown in a manifest that the three states share.
        return not files or self._scope.reaches(equality, files[0])

    def _reached(
        self, deletes: Sequence[TableFile], files: Sequence[TableFile]
    ) -> Sequence[TableFile]:
        """Returns the data files with rows that equality deletes can name."""
        return _matches(deletes, files, self._scope.reaches)

    def _carries_old_rows(self, file: TableFile) -> bool:
        history = self._theirs.state.history
        return history is None or any(
            changes.removed and file.path in changes.added for changes in history
        )

    def _kept_numbers(self) -> Iterator[FileConflict]:
        """Theirs restored a file that it wrote after the fork, for example.

        Only equality deletes depend on its number, which ours did not give. But ours may have
        rewritten the rows that theirs had rewritten into this file.
        """
        before = self._base.last_sequence
        older = [f for f in self._theirs.added_data if self._fork < f.sequence <= before]
        if not self._has_equality_deletes:
            restored = [file for file in older if file.sequence < file.file_sequence]
            older = restored if self._ours.has_rewritten else []
        if older:
            yield FileConflict("theirs restored or rewrote rows that ours never had", older)

    def _row_ids(self) -> Iterator[FileConflict]:
        """Format version 3: new versions of rows keep the ids that rows have in theirs.

        The ids are in the data files, so a merge cannot give these rows new ones.
        """
        theirs = self._theirs
        if theirs.state.version < ROW_LINEAGE:
            return
        unknown = [
            file
            for file in theirs.added_data
            if file.path not in theirs.ever_added and file.file_sequence > self._fork
        ]
        if unknown:
            yield FileConflict(
                "theirs restored files, whose rows can have ids that ours has given to other rows",
                unknown,
            )
        elif theirs.added_data and any(
            changes.added and any(map(self._has_other_ids, (*changes.removed, *changes.deleted_in)))
            for changes in theirs.state.history or ()
        ):
            yield FileConflict(
                "theirs changed rows to which it had given ids: ours can have other rows with"
                " these ids",
                theirs.added_data,
            )

    def _has_other_ids(self, path: str) -> bool:
        """Returns whether rows of a data file have ids in theirs that are not theirs in ours."""
        base, ours = self._base, self._ours.state
        id_ = Identity(path)
        there = self._theirs.first_row_ids(id_)
        if path in self._theirs.ever_added:
            return not there or any(first is None or first < ours.next_row_id for first in there)
        here = ours.files.get(id_)
        if here is None:
            # In a manifest of all three states, whose rows get ids in the first commit after an
            # upgrade; or removed by ours.
            return id_ not in base.files and base.next_row_id == 0
        return not there <= {None, here.first_row_id}

    # -- deletion vectors ------------------------------------------------------------------------

    @cached_property
    def _unions(self) -> dict[str, VectorUnion]:
        """The vectors of data files in which both sides deleted rows, by the data files."""
        ours, theirs = self._ours, self._theirs
        before = {
            file.referenced: file for file in (*ours.removed, *theirs.removed) if file.is_vector
        }
        unions = {}
        for path, deletes in theirs.deletes_by_file.items():
            others = ours.deletes_by_file.get(path, [])
            if len(deletes) != 1 or len(others) != 1:
                continue
            here, there = others[0], deletes[0]
            is_removed = path in ours.removed_data or path in theirs.removed_data
            is_new = here.identity != there.identity
            if here.is_vector and there.is_vector and is_new and not is_removed:
                may_replace_rows = ours.may_replace_rows(path) or theirs.may_replace_rows(path)
                unions[path] = VectorUnion(before.get(path), here, there, may_replace_rows)
        return unions

    @cached_property
    def _compacted_by_theirs(self) -> set[str]:
        return self._compacted(self._theirs)

    # -- the new snapshot ------------------------------------------------------------------------

    def _added(self) -> Iterator[AddedFile]:
        ours, theirs = self._ours, self._theirs
        for file in theirs.added:
            if file.identity in ours.state.files or self._is_dangling(file):
                continue
            if file.referenced in self._unions:
                continue
            yield AddedFile(file, self._number(file))

    def _gone(self) -> frozenset[str]:
        """Returns digests of the files that theirs has had, without those of the base."""
        return self._theirs.gone - {file_digest(id_.path) for id_ in self._base.files}

    def _is_dangling(self, file: TableFile) -> bool:
        """Returns whether ours dropped the only file in which a file deletes rows."""
        return file.referenced is not None and file.referenced in self._ours.removed_data

    def _number(self, file: TableFile) -> int | None:
        """Returns the data sequence number of a file of theirs in the new snapshot."""
        if self._ours.state.version == 1 or file.content is FileContent.POSITION_DELETES:
            return None
        if file.sequence <= self._fork:
            return file.sequence
        if self._ours.equality_deletes and file.path in self._compacted_by_theirs:
            # Equality deletes of ours must reach the rows that theirs compacted.
            return self._fork
        # Equality deletes of theirs must reach the same files of theirs as before.
        return file.sequence + self._shift if self._theirs.equality_deletes else None

    def _removed(self) -> Iterator[TableFile]:
        ours, theirs = self._ours, self._theirs
        for file in theirs.removed:
            if (present := ours.state.files.get(file.identity)) is not None:
                yield present
        # Without its data file, a deletion vector must go too.
        for file in ours.added_deletes:
            if file.is_vector and file.referenced in theirs.removed_data:
                yield file


def _matches(
    deletes: Sequence[TableFile],
    files: Sequence[TableFile],
    is_match: Callable[[TableFile, TableFile], bool],
) -> Sequence[TableFile]:
    """Returns the files that match some of the deletes. With too many pairs, all of them count."""
    if len(deletes) * len(files) > MOST_PAIRS:
        return files
    return [file for file in files if any(is_match(each, file) for each in deletes)]


def _both(first: Collection[str], second: Collection[str]) -> set[str]:
    """Returns the digests of files that are in both sets, or can be."""
    return {
        digest
        for here, there in ((first, second), (second, first))
        for digest in here
        if digest != ANY_FILE and (digest in there or ANY_FILE in there)
    }


def _form(file: TableFile) -> tuple[object, ...]:
    return file.content, file.spec_id, file.partition, file.records
