"""What one side of a table changed since the base: its files, and the history of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import dropwhile, takewhile

from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.identifiers import MOST_PAIRS
from nessie_cli.iceberg.combination.states import (
    ANY_FILE,
    FileContent,
    Identity,
    SnapshotChanges,
    TableFile,
    TableState,
    file_digest,
)


class SideChanges:
    """What a side changed since the base."""

    def __init__(self, base: TableState, side: TableState, scope: EqualityScope) -> None:
        self.base, self.state = base, side
        self._scope = scope
        self.added = [file for id_, file in side.files.items() if id_ not in base.files]
        self.removed = [file for id_, file in base.files.items() if id_ not in side.files]

    @cached_property
    def added_data(self) -> list[TableFile]:
        """The data files that the side added."""
        return [file for file in self.added if file.is_data]

    @cached_property
    def removed_data(self) -> dict[str, TableFile]:
        """The data files of the base that the side removed, by their paths."""
        return {file.path: file for file in self.removed if file.is_data}

    @cached_property
    def added_deletes(self) -> list[TableFile]:
        """The position deletes that the side added."""
        return [file for file in self.added if file.content is FileContent.POSITION_DELETES]

    @cached_property
    def equality_deletes(self) -> list[TableFile]:
        """Equality deletes that the side added."""
        return [file for file in self.added if file.content is FileContent.EQUALITY_DELETES]

    @cached_property
    def removed_equality_deletes(self) -> list[TableFile]:
        """The equality deletes of the base that the side removed."""
        return [file for file in self.removed if file.content is FileContent.EQUALITY_DELETES]

    @cached_property
    def deletes_by_file(self) -> dict[str, list[TableFile]]:
        """The added position deletes whose entries name their only data file, by its path."""
        by_file: dict[str, list[TableFile]] = {}
        for file in self.added_deletes:
            if file.referenced is not None:
                by_file.setdefault(file.referenced, []).append(file)
        return by_file

    @cached_property
    def wide_deletes(self) -> list[TableFile]:
        """The added position deletes that can be about several data files."""
        return [file for file in self.added_deletes if file.referenced is None]

    @cached_property
    def undone_deletes(self) -> list[TableFile]:
        """The position deletes of the base that a rollback or a revert took back."""
        return [
            file
            for file in self.removed
            if file.content is FileContent.POSITION_DELETES
            and file.referenced not in self.removed_data
            and not self._is_replaced(file)
        ]

    def _is_replaced(self, deletes: TableFile) -> bool:
        """Returns whether the rows that a file deletes are deleted in other files now.

        Only a combination removes deletions without that, as it applies a revert of them. If a data
        file was removed, too, but is there again, its rows are.
        """
        removers = [
            changes
            for changes in self.state.history or ()
            if deletes.identity in changes.removed_deletes
        ]
        is_rewritten = bool(removers) and not any(changes.is_combined for changes in removers)
        return is_rewritten and deletes.referenced not in self._remover

    def touches_rows(self, deletes: TableFile) -> bool:
        """Returns whether the side may have changed files in which a file deletes rows."""
        path = deletes.referenced
        if self.equality_deletes:
            return True
        if path is None:
            return bool(self.removed_data or self.added_deletes)
        return bool(
            path in self.removed_data or self.deletes_by_file.get(path) or self.wide_deletes
        )

    @cached_property
    def _remover(self) -> Mapping[str, SnapshotChanges]:
        return {path: changes for changes in self.state.history or () for path in changes.removed}

    def is_dropped(self, path: str) -> bool:
        """Returns whether a data file was removed with all its rows.

        Otherwise files that the side added can contain its rows, or new versions of them. They can
        be in a later snapshot: some writers overwrite rows by a deletion and an append. Deletions
        that a revert removed can be those of earlier versions of its rows.
        """
        return path in self._dropped and not self.is_updated(path) and not self.undone_deletes

    @cached_property
    def _dropped(self) -> frozenset[str]:
        """The data files that were removed after the side had added its last data file."""
        newest_first = reversed(self.state.history or ())
        without_rows = takewhile(lambda changes: not changes.added, newest_first)
        return frozenset(path for changes in without_rows for path in changes.removed)

    def is_updated(self, path: str, *, by_equality: bool = True) -> bool:
        """Returns whether rows of a data file can have been deleted and replaced by others.

        A snapshot that added deletions and rows says so; whether they belong together is not known.
        Without `by_equality`, equality deletes do not count.
        """
        history = self.state.history
        if history is None or any(
            changes.added
            and (
                changes.has_wide_deletes
                or path in changes.deleted_in
                or (by_equality and self._may_reach(changes.equality_deletes, path))
            )
            for changes in history
        ):
            return True
        return self._has_old_rows and (
            bool(self.wide_deletes)
            or path in self.deletes_by_file
            or self._may_reach([file.identity for file in self.equality_deletes], path)
        )

    def _may_reach(self, deletes: Collection[Identity], path: str) -> bool:
        """Returns whether equality deletes, which the side can have removed, reach a data file."""
        files, id_ = self.state.files, Identity(path)
        file = self.base.files.get(id_) or files.get(id_)
        if not deletes or len(self.equality_deletes) * len(self.base.files) > MOST_PAIRS:
            return bool(deletes)
        return file is None or any(
            each not in files or self._scope.reaches(files[each], file) for each in deletes
        )

    def may_replace_rows(self, path: str) -> bool:
        """Returns whether rows that it deleted in a data file can have new versions in others.

        They can be in a later snapshot: some writers overwrite rows by a deletion and an append.
        """
        since = list(
            dropwhile(
                lambda changes: not changes.deletes_anywhere and path not in changes.deleted_in,
                self.state.history or (),
            )
        )
        return not since or any(changes.added for changes in since)

    @property
    def has_updates(self) -> bool:
        """Whether a snapshot added rows and deletions that do not rewrite files."""
        history = self.state.history
        if history is None or any(
            changes.added and (changes.deletes_anywhere or changes.deleted_in)
            for changes in history
        ):
            return True
        return self._has_old_rows and bool(self.added_deletes or self.equality_deletes)

    @cached_property
    def _has_old_rows(self) -> bool:
        """Whether data files came back whose snapshots are not in the history.

        A rollback or a revert does that, also of updates.
        """
        return not self.ever_added.issuperset(file.path for file in self.added_data)

    @cached_property
    def gone(self) -> frozenset[str]:
        """Digests of the data files that the side has had since the base and does not have now."""
        history = self.state.history
        if history is None:
            return frozenset({ANY_FILE})
        removed = map(file_digest, self._remover)
        return frozenset(removed).union(*(changes.gone for changes in history))

    def has_had(self, file: TableFile) -> bool:
        """Returns whether the side had a data file, and removed or rewrote it."""
        if file.identity in self.state.files:
            return False
        return ANY_FILE in self.gone or file_digest(file.path) in self.gone

    def has_or_had(self, path: str) -> bool:
        """Returns whether a data file is known to be, or to have been, a file of the side."""
        return Identity(path) in self.state.files or file_digest(path) in self.gone

    def heirs(self, lost: Collection[str], other: SideChanges) -> set[str]:
        """Returns the data files that the other side never had, and that can have lost rows.

        `lost` are digests of data files that both sides removed. Their rows, or new versions of
        them, are in files that the same snapshot added. After a snapshot that only removed files,
        they can also be in later ones. The snapshots of both sides are left out.
        """
        common = {changes.id for changes in other.state.history or ()} - {None}
        sources, heirs = set(lost), set[str]()
        is_replaced_later = False
        for changes in self.state.history or ():
            if changes.id in common:
                continue
            removed = {*map(file_digest, changes.removed), *changes.gone}
            updated = {*map(file_digest, changes.deleted_in)} if changes.added else set()
            removes = ANY_FILE in changes.gone or not sources.isdisjoint(removed)
            is_update = bool(changes.added) and changes.deletes_anywhere
            if removes or is_update or is_replaced_later or not sources.isdisjoint(updated):
                new = [path for path in changes.added if not other.has_or_had(path)]
                heirs.update(new)
                sources.update(map(file_digest, new))
            if removes and not changes.added and not changes.is_combined:
                is_replaced_later = True
        return heirs

    @cached_property
    def ever_added(self) -> frozenset[str]:
        """All data files that some snapshot since the base added."""
        return frozenset(path for changes in self.state.history or () for path in changes.added)

    @cached_property
    def restored_files(self) -> bool:
        """Whether data files came back that no snapshot since the base added, as by a rollback."""
        removed = (path for path in self._remover if Identity(path) not in self.base.files)
        return self._has_old_rows or not self.ever_added.issuperset(removed)

    def first_row_ids(self, id_: Identity) -> set[int | None]:
        """Returns the ids that the first row of a data file has, and had before it was restored."""
        history = self.state.history or ()
        ids = {each.row_ids[id_.path] for each in history if id_.path in each.row_ids}
        present = self.state.files.get(id_)
        return ids if present is None else {*ids, present.first_row_id}

    @cached_property
    def compacted(self) -> frozenset[str]:
        """The added data files whose rows all come from files of the base."""
        return frozenset(
            path
            for changes in self.state.history or ()
            if changes.operation == "replace"
            and all(Identity(removed) in self.base.files for removed in changes.removed)
            for path in changes.added
        )

    @cached_property
    def moved(self) -> Mapping[str, Sequence[TableFile]]:
        """The files with the rows of each data file of the base that was only compacted.

        All its rows are live in these files, which are in the same partitions.
        """
        history = self.state.history
        if history is None or self.restored_files or any(c.deletes_anywhere for c in history):
            return {}
        if self.equality_deletes or self.undone_deletes:
            return {}
        moved: dict[str, Sequence[TableFile]] = {}
        changed = {path for changes in history for path in changes.deleted_in}
        for changes in history:
            before = [self.base.files.get(Identity(path)) for path in changes.removed]
            after = [self.state.files.get(Identity(path)) for path in changes.added]
            if (
                changes.operation == "replace"
                and not changes.is_combined
                and len({file and file.spec_id for file in (*before, *after)} - {None}) == 1
                and None not in (*before, *after)
                and changed.isdisjoint([*changes.removed, *changes.added])
            ):
                files = [file for file in after if file is not None]
                moved |= dict.fromkeys(changes.removed, files)
        return moved

    def is_restored(self, file: TableFile) -> bool:
        """Returns whether a file is older than the base: it came back by a rollback or a revert."""
        return 0 < file.file_sequence <= self.base.last_sequence

    @property
    def files_restored_by_combinations(self) -> list[TableFile]:
        """The added data files that a combined revert can have restored.

        They keep their numbers. Format version 1 has none, so these are all files of combinations.
        """
        combined = {
            path
            for changes in self.state.history or ()
            if changes.is_combined
            for path in changes.added
        }
        is_numbered = self.state.version > 1
        return [
            file
            for file in self.added_data
            if file.path in combined and not (is_numbered and file.sequence >= file.file_sequence)
        ]

    @property
    def has_rewritten(self) -> bool:
        """Whether the side can have data files with rows of others, or new versions of them."""
        return self.has_updates or any(changes.removed for changes in self.state.history or ())

    @property
    def changed_rows(self) -> bool:
        """Whether a snapshot since the base deleted or overwrote rows."""
        history = self.state.history
        return history is None or any(
            changes.operation in ("overwrite", "delete") for changes in history
        )
