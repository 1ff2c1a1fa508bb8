"""Merges, transplants and reverts that combine the tables which both sides changed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import (
    Collision,
    CombinationRules,
    Conflict,
    ContentKey,
    IcebergTable,
    MergeResult,
    TableCombination,
)
from nessie_cli.render.text import counted
from nessie_cli.repository.changes import MergeOptions

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import SideOptions
    from nessie_cli.iceberg.files import Files

T = TypeVar("T")
TABLES = "merge.tables"
ISOLATION = "merge.isolation"
IDENTIFIERS = "merge.identifiers"


def combining(
    app: Invocation,
    do: Callable[[MergeOptions], T],
    options: SideOptions,
    description: str,
    *,
    commits: int = 1,
    decided: Collection[ContentKey] = (),
    files: Files | None = None,
    reverts: bool = False,
) -> Callable[[MergeOptions], T]:
    """Returns a merge, transplant or revert that combines tables in conflict, if it may.

    `description` names it in the snapshots of combined tables, `commits` is the number of
    transplanted commits, and the tables at the keys `decided` are left to the caller. `files` reads
    and writes the files of tables; by default, a dry run writes none. A server with warehouses
    combines the tables in them itself, unless it `reverts` or `files` are given.
    """
    if options.no_combine or app.setting(TABLES) == "conflict":
        return do
    rules = CombinationRules(
        app.setting(ISOLATION) == "serializable",
        app.setting(IDENTIFIERS) == "conflict",
        tuple(decided),
    )
    is_asked = files is None and not reverts and app.repository().combines_tables

    def combined(merging: MergeOptions) -> T:
        if is_asked:
            merging = replace(merging, combination=rules)
        # Iceberg's libraries are loaded only if a table conflicts.
        try:
            return do(merging)
        except ReferenceConflict as error:
            if not any(map(_may_combine, error.conflicts)):
                raise
            try:
                from nessie_cli.iceberg.combination.merging import TableMerger
            except ImportError:
                missing = Collision(
                    "a package is missing that reads its files: pip install 'nessie-cli[iceberg]'"
                )
                error.conflicts = tuple(
                    replace(conflict, collisions=(missing,)) if _may_combine(conflict) else conflict
                    for conflict in error.conflicts
                )
                raise error from None
        merger = TableMerger(
            files or table_files(dry_run=merging.dry_run),
            description,
            rules,
            commits=commits,
        )
        result = merger.merge(do, merging)
        if not isinstance(result, MergeResult):
            for combination in merger.combinations.values():
                app.output.note(_described(combination))
        return result

    return combined


def _may_combine(conflict: Conflict) -> bool:
    """Whether a conflict is about a table, and a server has not said why it does not combine."""
    return isinstance(conflict.actual, IcebergTable) and not conflict.collisions


def table_files(*, dry_run: bool) -> Files:
    """Returns the files of tables, with the user's settings. A dry run writes none."""
    from nessie_cli.iceberg.combination.merging import UnwrittenFiles
    from nessie_cli.iceberg.files import Files
    from nessie_cli.workspace.environment import of_s3

    files = Files(of_s3())
    return UnwrittenFiles(files) if dry_run else files


def _described(combination: TableCombination) -> str:
    """Returns what a revert removes from a table that has changed since, and adds again."""
    parts = (
        f"{counted(files, 'file')} with {counted(rows, 'row')} {verb}"
        for files, rows, verb in (
            (combination.removed_files, combination.removed_rows, "removed"),
            (combination.added_files, combination.added_rows, "added again"),
        )
        if files
    )
    changes = ", ".join(parts) or "only definitions change"
    return f"combined with later changes: {changes}"
