"""Merges that combine the Iceberg tables which both sides changed.

A merge, transplant or revert is performed; each conflict about a table is resolved by the
combination of its files, and it is performed again. Files are written before the branch moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count
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
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import content_of, in_state, parse_document
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import (
    CollidingFile,
    Collision,
    CombinationRules,
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
MOST_TRIES = 20
"""How often a merge is performed while others change its tables."""
MOST_FILES_NAMED = 20
"""The most files of one collision that are named."""


class UnwrittenFiles(Files):
    """The files of a dry run: those of `files`, and new ones in memory."""

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._files = files
        self._new: dict[str, bytes] = {}

    def has_answered(self, uri: str) -> bool:
        """Whether the file system of a file has answered any request."""
        return self._files.has_answered(uri)

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""
        data = self._new.get(uri)
        return self._files.read(uri) if data is None else data

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
    transplanted commits. `permit` raises `NotAllowed` if a table in conflict may not be combined.
    A table of more than `most_entries` manifest entries to read is not.
    """

    def __init__(
        self,
        files: Files,
        description: str,
        rules: CombinationRules,
        *,
        commits: int = 1,
        permit: Callable[[Conflict], None] | None = None,
        most_entries: int | None = None,
    ) -> None:
        self._files = files
        self._description = description
        self._rules = rules
        self._commits = commits
        self._permit = permit
        self._most_entries = most_entries
        self.combinations: Mapping[str | None, TableCombination] = {}
        """The combined tables of the last merge, by content id."""
        self._seen: set[_Case] = set()
        self._decided: dict[_Case, _Decided] = {}
        self._collisions: dict[_Case, tuple[Collision, ...]] = {}

    def merge(self, do: Callable[[MergeOptions], T], options: MergeOptions) -> T:
        """Performs a merge, transplant or revert, with combined tables.

        `do` must apply the same commits each time, even if their branch moves. Raises the errors of
        `do`. A conflict about a table that does not combine, or whose combination the store
        refuses, has the reasons as its collisions. Removes the files of a failed attempt, unless
        its outcome is unknown.
        """
        used: dict[_Content, _Decided] = {}
        conflict: ReferenceConflict | None = None
        try:
            for number in count(1):
                behaviors = [*options.behaviors, *(each.behavior for each in used.values())]
                try:
                    result = do(replace(options, behaviors=behaviors))
                except ReferenceConflict as error:
                    # Others may change the table each time before its combination is stored.
                    if number > MOST_TRIES or not self._resolve(error, used):
                        self._explain(error)
                        raise
                    conflict = error
                except NotAllowed as error:
                    # A protected branch may take no contents that a client has combined.
                    if conflict is None or isinstance(error, HookRefused):
                        raise
                    self._collisions |= dict.fromkeys(self._seen, (Collision(error.message),))
                    self._explain(conflict)
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

    def _resolve(self, error: ReferenceConflict, used: dict[_Content, _Decided]) -> bool:
        """Combines tables in conflict that have not been combined yet.

        Returns whether the merge can get further than to this error.
        """
        cases = self._cases(error.conflicts)
        in_use = {_content(each) for each in error.conflicts if _case(each) is None} & used.keys()
        if in_use:
            # A decision about the key of a table takes the whole state of one side, so the report
            # must not say that the rows are combined.
            for case in self._decided:
                if (case.commit, case.ours.id) in in_use:
                    self._collisions[case] = (Collision(_KEY_CONFLICT),)
            for content in in_use:
                del used[content]
            return True
        if isinstance(error, MergeConflict) and error.result.has_several_bases:
            reason = "the branches have several merge bases: transplant new commits"
            self._collisions |= dict.fromkeys(cases, (Collision(reason),))
        new = [case for case in cases if case not in self._seen]
        self._seen.update(new)
        more = {
            (case.commit, case.ours.id): decided
            for case in new
            if (decided := self._decide(case, cases[case])) is not None
        }
        used |= more
        return bool(more)

    def _cases(self, conflicts: Sequence[Conflict]) -> Mapping[_Case, Conflict]:
        """Returns the tables in conflict that may combine."""
        return {
            case: conflict
            for conflict in conflicts
            if (case := _case(conflict)) is not None
            and not conflict.collisions
            and case.key not in self._rules.excluded
        }

    # -- one table -----------------------------------------------------------------------------

    def _decide(self, case: _Case, conflict: Conflict) -> _Decided | None:
        if case in self._decided:
            return self._decided[case]
        if case in self._collisions:
            return None
        if case.commit is None and self._commits > 1:
            # A server without our extensions.
            reason = "this server does not say which commit conflicts; apply the commits singly"
            self._collisions[case] = (Collision(reason),)
            return None
        written: list[str] = []
        try:
            if self._permit is not None:
                self._permit(conflict)
            decided = self._combine(case, written)
        except LocationRefused:
            # A server cannot read it; its client may.
            self._discard(written)
            return None
        except (InvalidInput, NotAllowed, StoreUnavailable) as error:
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
            is_serializable=self._rules.is_serializable,
            refuses_same_keys=self._rules.refuses_same_keys,
            most_entries=self._most_entries,
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

    def _explain(self, error: ReferenceConflict) -> None:
        """Adds the reasons why tables do not combine to the conflicts of an error."""
        error.conflicts = tuple(map(self._explained, error.conflicts))
        if isinstance(error, MergeConflict):
            details = (
                replace(each, conflict=each.conflict and self._explained(each.conflict))
                for each in error.result.details
            )
            error.result = replace(error.result, details=tuple(details))

    def _explained(self, conflict: Conflict) -> Conflict:
        case = _case(conflict)
        collisions = self._collisions.get(case) if case is not None else None
        return replace(conflict, collisions=collisions) if collisions else conflict

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
                replace(detail, combination=combination)
                if detail.result is not None
                and (combination := self.combinations.get(detail.result.id)) is not None
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


_Content = tuple[str | None, str | None]
"""A transplanted commit, and the id of a content in conflict."""
_KEY_CONFLICT = "its key is in conflict, too: rename the table on one branch, and its rows combine"


def _content(conflict: Conflict) -> _Content:
    return conflict.commit, conflict.content_id


def _case(conflict: Conflict) -> _Case | None:
    """Returns the table whose values conflict, if it is in all three states."""
    if conflict.type is not ConflictType.VALUE_DIFFERS or conflict.key is None:
        return None
    if conflict.value_key is not None or conflict.same_file_key is not None:
        return None
    base, ours, theirs = conflict.expected, conflict.actual, conflict.proposed
    if (
        isinstance(base, IcebergTable)
        and isinstance(ours, IcebergTable)
        and isinstance(theirs, IcebergTable)
        and ours.id is not None
        and base.id == ours.id == theirs.id
    ):
        return _Case(conflict.commit, conflict.key, base, ours, theirs)
    return None


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
