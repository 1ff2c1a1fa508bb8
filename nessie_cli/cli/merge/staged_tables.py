"""Tables of the batch that the branch has changed since: `nessie resolve` combines them."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nessie_cli.cli.merge.combining import rules_of, table_files, without_package
from nessie_cli.cli.merge.decisions import Choice, Decision, Decisions
from nessie_cli.iceberg.combination.merging import Combiner, states_of
from nessie_cli.model import (
    Conflict,
    ConflictType,
    ContentKey,
    IcebergTable,
    TableCombination,
)

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.errors import ReferenceConflict


class StagedTables:
    """Combines staged tables with their present states, and writes the files of the results.

    The base is the state on which a table was staged. `branch` is named in the new snapshots.
    """

    def __init__(self, app: Invocation, branch: str) -> None:
        self._app, self._branch = app, branch
        self.combinations: dict[str | None, TableCombination] = {}
        """The combined tables, by content id."""
        self._written: list[IcebergTable] = []
        self._keys: set[ContentKey] = set()

    def combine(self, error: ReferenceConflict, decisions: Decisions) -> Collection[ContentKey]:
        """Adds a decision for each table that combines, unless one is given. Returns their keys.

        The conflicts of the others then say why they do not combine.
        """
        for conflict in error.conflicts:
            if conflict.key in self._keys:
                # The branch has changed the table again.
                decisions.answers.pop((conflict.key, False), None)
        combined: dict[ContentKey, Decision] = {}
        error.conflicts = tuple(
            each if decisions.about(each) else self._combined(each, error, combined)
            for each in error.conflicts
        )
        decisions.answers |= {(key, False): decision for key, decision in combined.items()}
        self._keys = {key for key in self._keys if (key, False) in decisions.answers}
        self._keys |= combined.keys()
        return combined.keys()

    def _combined(
        self, conflict: Conflict, error: ReferenceConflict, combined: dict[ContentKey, Decision]
    ) -> Conflict:
        """Adds the decision for a conflict. Returns the conflict, with the reasons against one."""
        states = states_of(_of_values(conflict), error)
        if states is None:
            return conflict
        try:
            combiner = self._combiner
        except ImportError:
            return without_package(conflict)
        table = combiner.attempt(states)
        if table.content is None or table.combination is None:
            return replace(conflict, collisions=table.collisions)
        if table.content != states.ours:
            self._written.append(table.content)
            self.combinations[table.content.id] = table.combination
        combined[states.key] = Decision(Choice.EDIT, table.content)
        return conflict

    @cached_property
    def _combiner(self) -> Combiner:
        # Iceberg's libraries are loaded only if a table conflicts.
        from nessie_cli.iceberg.combination.file_combiner import FileCombiner

        description = f"staged changes for {self._branch}"
        return FileCombiner(table_files(dry_run=False), description, rules_of(self._app))

    def discard(self) -> None:
        """Removes the files of the combined tables: nothing names them."""
        for content in self._written:
            self._combiner.discard(content)


def _of_values(conflict: Conflict) -> Conflict:
    """Returns the conflict of a table that the branch has renamed as one about its values."""
    rename = conflict.target_rename
    if rename is None or rename.old != conflict.key:
        return conflict
    return replace(conflict, type=ConflictType.VALUE_DIFFERS)
