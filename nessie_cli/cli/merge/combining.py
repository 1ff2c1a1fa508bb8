"""Merges, transplants and reverts that combine the tables which both sides changed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import (
    Collision,
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
) -> Callable[[MergeOptions], T]:
    """Returns a merge, transplant or revert that combines tables in conflict, if it may.

    `description` names it in the snapshots of combined tables, `commits` is the number of
    transplanted commits, and the tables at the keys `decided` are left to the caller. `files` reads
    and writes the files of tables; by default, a dry run writes none.
    """
    if options.no_combine or app.setting(TABLES) == "conflict":
        return do

    def combined(merging: MergeOptions) -> T:
        # Iceberg's libraries are loaded only if a table conflicts.
        try:
            return do(merging)
        except ReferenceConflict as error:
            if not any(isinstance(each.actual, IcebergTable) for each in error.conflicts):
                raise
            try:
                from nessie_cli.iceberg.combination.merging import TableMerger
            except ImportError:
                missing = Collision(
                    "a package is missing that reads its files: pip install 'nessie-cli[iceberg]'"
                )
                error.conflicts = tuple(
                    replace(conflict, collisions=(missing,))
                    if isinstance(conflict.actual, IcebergTable)
                    else conflict
                    for conflict in error.conflicts
                )
                raise error from None
        merger = TableMerger(
            files or table_files(dry_run=merging.dry_run),
            description,
            commits=commits,
            is_serializable=app.setting(ISOLATION) == "serializable",
            refuses_same_keys=app.setting(IDENTIFIERS) == "conflict",
            decided=decided,
        )
        result = merger.merge(do, merging)
        if not isinstance(result, MergeResult):
            for combination in merger.combinations.values():
                app.output.note(_described(combination))
        return result

    return combined


def table_files(*, dry_run: bool) -> Files:
    """Returns the files of tables, with the user's settings. A dry run writes none."""
    from nessie_cli.iceberg.combination.merging import UnwrittenFiles
    from nessie_cli.iceberg.files import Files
    from nessie_cli.workspace.environment import of_s3

    return UnwrittenFiles(of_s3()) if dry_run else Files(of_s3())


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
