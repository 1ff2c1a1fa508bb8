"""Merges that combine the Iceberg tables which both sides changed.

A merge, transplant or revert is performed; each conflict about a table is resolved by the
combination of its files, and it is performed again. Files are written before the branch moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import (
    HookRefused,
    InvalidInput,
    MergeConflict,
    NessieError,
    NotAllowed,
    OutcomeUnknown,
    ReferenceConflict,
    StoreUnavailable,
)
from nessie_cli.iceberg.combination.combination import Combination, combine
from nessie_cli.iceberg.combination.decision import FileConflict
from nessie_cli.iceberg.combination.definitions import DefinitionConflict
from nessie_cli.iceberg.combination.states import FileContent, TableFile
from nessie_cli.iceberg.combination.writing import write_table
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import content_of, in_state, parse_document
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import (
    CollidingFile,
    Collision,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    MergeResult,
    TableCombination,
)
from nessie_cli.repository.changes import MergeOptions

T = TypeVar("T")
MOST_FILES_NAMED = 20
"""The most files of one collision that are named."""


class UnwrittenFiles(Files):
    """The files of a dry run. Keeps new files in memory."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._new: dict[str, bytes] = {}

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""
        data = self._new.get(uri)
        return super().read(uri) if data is None else data

    def write(self, uri: str, data: bytes) -> None:
        """Keeps a new file in memory."""
        self._new[uri] = data

    def remove(self, uri: str) -> None:
        """Drops a new file."""
        self._new.pop(uri, None)


class _Case(Struct, frozen=True):
    """The three states of one table in one commit."""

    commit: str | None
    key: ContentKey
    base: IcebergTable
    ours: IcebergTable
    theirs: IcebergTable


class _Decided(Struct, frozen=True):
    """A combined table: the decision with its content, and the files that were written for it."""

    behavior: KeyBehavior
    combination: TableCombination
    files: Sequence[str]


class TableMerger:
    """Performs merges, and combines the tables in conflict.

    `description` names the merge in the summaries of new snapshots. `commits` is the number of
    transplanted commits. With `is_serializable`, tables that set no isolation are serializable.
    With `refuses_same_keys`, added rows that may have equal identifiers are a conflict. Tables at
    the keys `decided` stay in conflict.
    """

    def __init__(
        self,
        files: Files,
        description: str,
        *,
        commits: int = 1,
        is_serializable: bool = False,
        refuses_same_keys: bool = False,
        decided: Collection[ContentKey] = (),
    ) -> None:
        self._files = files
        self._description = description
        self._commits = commits
        self._is_serializable = is_serializable
        self._refuses_same_keys = refuses_same_keys
        self._keys = decided
        self.combinations: Mapping[str | None, TableCombination] = {}
        """The combined tables of the last merge, by content id."""
        self._decided: dict[_Case, _Decided] = {}
        self._collisions: dict[_Case, tuple[Collision, ...]] = {}

    def merge(self, do: Callable[[MergeOptions], T], options: MergeOptions) -> T:
        """Performs a merge, transplant or revert, with combined tables.

        `do` must apply the same commits each time, even if their branch moves. Raises the errors of
        `do`. A conflict about a table that does not combine, or whose combination the store
        refuses, has the reasons as its collisions. Removes the files of a failed attempt, unless
        its outcome is unknown.
        """
        used: dict[tuple[str | None, ContentKey], _Decided] = {}
        seen: set[_Case] = set()
        conflict: ReferenceConflict | None = None
        try:
            while True:
                behaviors = [*options.behaviors, *(each.behavior for each in used.values())]
                try:
                    result = do(replace(options, behaviors=behaviors))
                except ReferenceConflict as error:
                    cases = list(_cases(error.conflicts))
                    if isinstance(error, MergeConflict) and error.result.has_several_bases:
                        reason = "the branches have several merge bases: transplant new commits"
                        self._collisions |= dict.fromkeys(cases, (Collision(reason),))
                    new = [c for c in cases if c not in seen and c.key not in self._keys]
                    seen.update(new)
                    more = {
                        (case.commit, case.key): decided
                        for case in new
                        if (decided := self._decide(case)) is not None
                    }
                    if not more:
                        error.conflicts = tuple(self._explained(error.conflicts))
                        raise
                    used |= more
                    conflict = error
                except NotAllowed as error:
                    # A protected branch may take no contents that a client has combined.
                    if conflict is None or isinstance(error, HookRefused):
                        raise
                    self._collisions |= dict.fromkeys(seen, (Collision(error.message),))
                    conflict.conflicts = tuple(self._explained(conflict.conflicts))
                    raise conflict from None
                else:
                    break
        except OutcomeUnknown:
            raise
        except BaseException:
            self._remove([])
            raise
        self._remove(used.values())
        self.combinations = _by_content(used.values())
        return self._with_combinations(result)

    # -- one table -----------------------------------------------------------------------------

    def _decide(self, case: _Case) -> _Decided | None:
        if case in self._decided:
            return self._decided[case]
        if case in self._collisions:
            return None
        if case.commit is None and self._commits > 1:
            reason = "this server does not say which commit conflicts; apply the commits singly"
            self._collisions[case] = (Collision(reason),)
            return None
        written: list[str] = []
        try:
            decided = self._combine(case, written)
        except (InvalidInput, StoreUnavailable) as error:
            self._discard(written)
            self._collisions[case] = (Collision(error.message),)
            return None
        except BaseException:
            self._discard(written)
            raise
        if decided is not None:
            self._decided[case] = decided
        return decided

    def _combine(self, case: _Case, written: list[str]) -> _Decided | None:
        combination = combine(
            self._document(case.base),
            self._document(case.ours),
            self._document(case.theirs),
            self._files.read,
            is_serializable=self._is_serializable,
            refuses_same_keys=self._refuses_same_keys,
        )
        if combination.conflicts:
            self._collisions[case] = tuple(map(_collision, combination.conflicts))
            return None
        if combination.files.is_empty and not combination.definitions.updates:
            # Not the side of ours: theirs may have renamed the table.
            return _Decided(_behavior(case, case.ours), _counts(combination), [])

        def write(location: str, data: bytes) -> None:
            written.append(location)
            self._files.write(location, data)

        table = write_table(
            combination,
            write,
            location=case.ours.metadata_location,
            now=time.time_ns() // 1_000_000,
            summary={
                "nessie.combined-by": self._description,
                "nessie.combined-base": str(case.base.snapshot_id),
                "nessie.combined-ours": str(case.ours.snapshot_id),
                "nessie.combined-theirs": str(case.theirs.snapshot_id),
            },
        )
        write(table.location, msgspec.json.encode(table.document))
        content = content_of(table.document, table.location).with_id(case.ours.id)
        return _Decided(_behavior(case, content), _counts(combination), written)

    def _document(self, content: IcebergTable) -> dict[str, Any]:
        location = content.metadata_location
        document = parse_document(self._files.read(location), location)
        check_metadata(document)
        return dict(in_state(document, content))

    # -- afterwards ------------------------------------------------------------------------------

    def _explained(self, conflicts: Sequence[Conflict]) -> Iterator[Conflict]:
        cases = {(case.commit, case.key): case for case in _cases(conflicts)}
        for conflict in conflicts:
            case = cases.get((conflict.commit, conflict.key)) if conflict.key else None
            collisions = self._collisions.get(case, ()) if case is not None else ()
            yield replace(conflict, collisions=collisions)

    def _remove(self, used: Collection[_Decided]) -> None:
        """Removes the files of combinations that are not used."""
        for case, decided in list(self._decided.items()):
            if decided not in used:
                self._discard(decided.files)
                del self._decided[case]

    def _discard(self, files: Sequence[str]) -> None:
        for location in files:
            # A file that stays does no harm: garbage collection removes it.
            with suppress(NessieError, OSError):
                self._files.remove(location)

    def _with_combinations(self, result: T) -> T:
        """Adds the combinations to the details of a merge or transplant."""
        if not isinstance(result, MergeResult):
            return result
        return replace(
            result,
            details=tuple(
                replace(detail, combination=self.combinations.get(detail.result.id))
                if detail.result is not None
                else detail
                for detail in result.details
            ),
        )


def _by_content(decided: Collection[_Decided]) -> dict[str | None, TableCombination]:
    """Returns the combinations by content id. A transplant can combine a table several times."""
    combinations: dict[str | None, TableCombination] = {}
    for each in decided:
        if each.files:
            id_ = each.behavior.content_id
            combinations[id_] = _sum(combinations.get(id_), each.combination)
    return combinations


def _cases(conflicts: Sequence[Conflict]) -> Iterator[_Case]:
    """Yields the tables whose values conflict, and that are in all three states."""
    for conflict in conflicts:
        states = conflict.expected, conflict.actual, conflict.proposed
        if conflict.type is not ConflictType.VALUE_DIFFERS or conflict.key is None:
            continue
        if conflict.value_key is not None or conflict.same_file_key is not None:
            continue
        base, ours, theirs = states
        if (
            isinstance(base, IcebergTable)
            and isinstance(ours, IcebergTable)
            and isinstance(theirs, IcebergTable)
            and ours.id is not None
            and base.id == ours.id == theirs.id
        ):
            yield _Case(conflict.commit, conflict.key, base, ours, theirs)


def _behavior(case: _Case, content: Content) -> KeyBehavior:
    """Returns the decision that stores a content, whatever key the merge gives it."""
    return KeyBehavior(
        case.key,
        MergeBehavior.NORMAL,
        case.ours,
        content,
        case.ours.id,
        case.commit,
        is_combined=True,
    )


def _collision(conflict: FileConflict | DefinitionConflict) -> Collision:
    if isinstance(conflict, DefinitionConflict):
        return Collision(str(conflict))
    files = tuple(map(_colliding, conflict.files[:MOST_FILES_NAMED]))
    more = len(conflict.files) - len(files)
    return Collision(conflict.reason + (f" (and {more:,} more files)" if more else ""), files)


def _colliding(file: TableFile) -> CollidingFile:
    partition = file.row.get("partition") or {}
    text = ", ".join(f"{name}={value}" for name, value in partition.items())
    return CollidingFile(file.path, text, file.records)


def _counts(combination: Combination) -> TableCombination:
    added = [each.file for each in combination.files.added]
    removed = combination.files.removed
    deleted = sum(f.records for f in added if f.content is FileContent.POSITION_DELETES) - sum(
        f.records for f in removed if f.content is FileContent.POSITION_DELETES
    )
    return TableCombination(
        len(added),
        len(removed),
        sum(file.records for file in added if file.is_data),
        sum(file.records for file in removed if file.is_data) + max(deleted, 0),
        tuple(combination.notes),
    )


def _sum(first: TableCombination | None, second: TableCombination) -> TableCombination:
    if first is None:
        return second
    return TableCombination(
        first.added_files + second.added_files,
        first.removed_files + second.removed_files,
        first.added_rows + second.added_rows,
        first.removed_rows + second.removed_rows,
        tuple(dict.fromkeys((*first.notes, *second.notes))),
    )
