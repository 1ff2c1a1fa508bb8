"""Merges that combine the Iceberg tables which both sides changed.

A merge, transplant or revert is performed; each conflict about a table is resolved by the
combination of its files, and it is performed again. Files are written before the branch moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import (
    HookRefused,
    InvalidInput,
    MergeConflict,
    NotAllowed,
    ReferenceConflict,
    StoreUnavailable,
    WriteRefused,
)
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.model import (
    Collision,
    CombinedTable,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    MergedBase,
    MergeResult,
    TableCombination,
)
from nessie_cli.repository.changes import MergeOptions

T = TypeVar("T")
MOST_TRIES = 20
"""How often a merge is performed while others change its tables."""


class NotStored(Exception):
    """Raised by the caller of a `TableMerger` if certainly no commit names the new files."""


class MergedTable(Struct, frozen=True):
    """The states of a table at two merge bases that conflict about it, and their own base."""

    base: TableBase
    ours: IcebergTable
    theirs: IcebergTable


TableBase = IcebergTable | MergedTable


class TableStates(Struct, frozen=True):
    """The three states of a table that both sides changed.

    If several merge bases conflict about the table, `base` is the merge of their states. `commit`
    is the transplanted commit, and `head` the commit of ours. The table has `head_key` there, and
    `key` after earlier commits of the transplant.
    """

    commit: str | None
    head: str
    key: ContentKey
    head_key: ContentKey
    base_key: ContentKey
    theirs_key: ContentKey
    base: TableBase
    ours: IcebergTable
    theirs: IcebergTable

    @property
    def bases(self) -> list[IcebergTable]:
        """The states that the base is, or is made of."""
        return _tables_of(self.base)

    @property
    def of_conflict(self) -> _Content:
        """What a later conflict about the table has in common with this one."""
        return self.commit, self.ours.id


class Combiner(ABC):
    """Combines single tables."""

    @abstractmethod
    def combine(self, states: TableStates) -> CombinedTable:
        """Combines a table, and writes its new files.

        Raises `LocationRefused` if another combiner may have access to its files, and otherwise
        `NotAllowed`, `InvalidInput` or `StoreUnavailable` if they cannot be read or written.
        """

    def attempt(self, states: TableStates) -> CombinedTable:
        """Combines a table as `combine` does, with errors as collisions.

        Raises `LocationRefused` if another combiner may have access to its files.
        """
        try:
            return self.combine(states)
        except LocationRefused:
            raise
        except (InvalidInput, NotAllowed, StoreUnavailable) as error:
            return CombinedTable(collisions=(Collision(error.message),))

    @abstractmethod
    def discard(self, content: IcebergTable) -> None:
        """Removes the files of a combined table that no commit needs."""


class TableMerger:
    """Performs merges, and combines the tables in conflict.

    The first of the `combiners` with access to a table combines it. Tables at the keys `excluded`
    stay in conflict. `commits` is the number of transplanted commits.
    """

    def __init__(
        self,
        combiners: Sequence[Combiner],
        *,
        excluded: Collection[ContentKey] = (),
        commits: int = 1,
    ) -> None:
        self._combiners = combiners
        self._excluded = frozenset(excluded)
        self._commits = commits
        self.combinations: Mapping[str | None, TableCombination] = {}
        """The combined tables of the last merge, by content id."""
        self._seen: set[TableStates] = set()
        self._combined: dict[TableStates, _Combined] = {}
        self._collisions: dict[TableStates, tuple[Collision, ...]] = {}

    def merge(self, do: Callable[[MergeOptions], T], options: MergeOptions) -> T:
        """Performs a merge, transplant or revert, with combined tables.

        `do` must apply the same commits each time, even if their branch moves. Raises the errors of
        `do`. A conflict about a table that does not combine, or whose combination the store
        refuses, has the reasons as its collisions. Removes the files of an attempt that certainly
        stored nothing: if `do` raises `ReferenceConflict`, `NotStored` or `WriteRefused`.
        """
        used: dict[_Content, _Combined] = {}
        conflict: ReferenceConflict | None = None
        is_certain = True
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
                    # The refusal may be that of a proxy, or of reading the result.
                    is_certain = isinstance(error, WriteRefused)
                    raise conflict from None
                else:
                    break
        except (NotStored, ReferenceConflict, WriteRefused):
            if is_certain:
                self._discard([])
            raise
        # After any other error, or Ctrl-C, a commit may name the files.
        self._discard(used.values())
        self.combinations = _by_content(used.values())
        return self._with_combinations(result)

    def _resolve(self, error: ReferenceConflict, used: dict[_Content, _Combined]) -> bool:
        """Combines tables in conflict that have not been combined yet.

        Returns whether the merge can get further than to this error.
        """
        tables = [states for each in error.conflicts if (states := self._states(each, error))]
        in_use = {
            of_conflict
            for each in error.conflicts
            if (of_conflict := (each.commit, each.content_id)) in used
            and states_of(each, error) is None
        }
        if in_use:
            # A decision about the key of a table takes the whole state of one side, so the report
            # must not say that the rows are combined.
            for states in self._combined:
                if states.of_conflict in in_use:
                    self._collisions[states] = (Collision(_KEY_CONFLICT),)
            for of_conflict in in_use:
                del used[of_conflict]
            return True
        if _has_several_bases(error):
            unknown = [
                states
                for each in error.conflicts
                if (states := self._states(each, error)) and _base_table(each.merged_base) is None
            ]
            self._collisions |= dict.fromkeys(unknown, (Collision(_SEVERAL_BASES),))
        new = [states for states in tables if states not in self._seen]
        self._seen.update(new)
        more = {
            states.of_conflict: combined
            for states in new
            if (combined := self._combine(states)) is not None
        }
        used |= more
        return bool(more)

    def _states(self, conflict: Conflict, error: ReferenceConflict) -> TableStates | None:
        """Returns the states of a table in conflict that may combine."""
        states = states_of(conflict, error)
        if states is None or conflict.collisions or states.key in self._excluded:
            return None
        return states

    def _combine(self, states: TableStates) -> _Combined | None:
        if states in self._collisions:
            return None
        if states.commit is None and self._commits > 1:
            # A server without our extensions.
            reason = "this server does not say which commit conflicts; apply the commits singly"
            self._collisions[states] = (Collision(reason),)
            return None
        for combiner in self._combiners:
            try:
                table = combiner.attempt(states)
            except LocationRefused:
                continue
            if table.content is None or table.combination is None:
                self._collisions[states] = table.collisions
                return None
            self._combined[states] = _Combined(combiner, table.content, table.combination, states)
            return self._combined[states]
        return None

    # -- afterwards ------------------------------------------------------------------------------

    def _explain(self, error: ReferenceConflict) -> None:
        """Adds the reasons why tables do not combine to the conflicts of an error."""

        def explained(conflict: Conflict) -> Conflict:
            states = states_of(conflict, error)
            collisions = self._collisions.get(states) if states is not None else None
            return replace(conflict, collisions=collisions) if collisions else conflict

        error.conflicts = tuple(map(explained, error.conflicts))
        if isinstance(error, MergeConflict):
            details = (
                replace(each, conflict=each.conflict and explained(each.conflict))
                for each in error.result.details
            )
            error.result = replace(error.result, details=tuple(details))

    def _discard(self, used: Collection[_Combined]) -> None:
        """Removes the files of combined tables that are not used."""
        for states, combined in list(self._combined.items()):
            if combined not in used:
                combined.combiner.discard(combined.content)
                del self._combined[states]

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


class _Combined(Struct, frozen=True, eq=False):
    """A combined table, and the combiner that wrote its files."""

    combiner: Combiner
    content: IcebergTable
    combination: TableCombination
    states: TableStates

    @property
    def behavior(self) -> KeyBehavior:
        """The decision that stores the content, whatever key the merge gives it."""
        return KeyBehavior(
            self.states.key,
            MergeBehavior.NORMAL,
            self.states.ours,
            self.content,
            self.states.ours.id,
            self.states.commit,
            is_combined=True,
        )


def _by_content(combined: Collection[_Combined]) -> dict[str | None, TableCombination]:
    """Returns the combinations by content id. A transplant can combine a table several times."""
    combinations: dict[str | None, TableCombination] = {}
    for each in combined:
        if each.content != each.states.ours:
            id_ = each.content.id
            combinations[id_] = _sum(combinations.get(id_), each.combination)
    return combinations


_Content = tuple[str | None, str | None]
"""A transplanted commit, and the id of a content in conflict."""
_SEVERAL_BASES = "the branches have several merge bases: transplant new commits"
_KEY_CONFLICT = "its key is in conflict, too: rename the table on one branch, and its rows combine"


def states_of(conflict: Conflict, error: ReferenceConflict) -> TableStates | None:
    """Returns the states of a table whose values conflict, if it is in all three of them."""
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
        # With several merge bases, `expected` is only a state in conflict with both sides.
        return TableStates(
            conflict.commit,
            error.head or "",
            conflict.key,
            conflict.changed_key or conflict.key,
            conflict.base_key or conflict.key,
            conflict.theirs_key or conflict.key,
            _base_table(conflict.merged_base) or base,
            ours,
            theirs,
        )
    return None


def _has_several_bases(error: ReferenceConflict) -> bool:
    return isinstance(error, MergeConflict) and error.result.has_several_bases


def _base_table(base: Content | MergedBase | None) -> TableBase | None:
    """Returns the table at several merge bases; None if it is not known, or not in all of them."""
    if not isinstance(base, MergedBase):
        return base if isinstance(base, IcebergTable) else None
    before, ours, theirs = map(_base_table, (base.base, base.ours, base.theirs))
    if before is None or not isinstance(ours, IcebergTable) or not isinstance(theirs, IcebergTable):
        return None
    return MergedTable(before, ours, theirs)


def _tables_of(base: TableBase) -> list[IcebergTable]:
    if isinstance(base, MergedTable):
        return [*_tables_of(base.base), base.ours, base.theirs]
    return [base]


def _sum(first: TableCombination | None, second: TableCombination) -> TableCombination:
    if first is None:
        return second
    return TableCombination(
        first.added_files + second.added_files,
        first.removed_files + second.removed_files,
        _sum_of_rows(first.added_rows, second.added_rows),
        _sum_of_rows(first.removed_rows, second.removed_rows),
        tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def _sum_of_rows(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
