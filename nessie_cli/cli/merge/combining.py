"""Merges, transplants and reverts that combine the tables which both sides changed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import Collision, ContentKey, IcebergTable
from nessie_cli.repository.changes import MergeOptions

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import SideOptions

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
) -> Callable[[MergeOptions], T]:
    """Returns a merge, transplant or revert that combines tables in conflict, if it may.

    `description` names it in the snapshots of combined tables, `commits` is the number of
    transplanted commits, and the tables at the keys `decided` are left to the caller.
    """
    if options.no_combine or app.setting(TABLES) == "conflict":
        return do

    def combined(merging: MergeOptions) -> T:
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
        from nessie_cli.iceberg.files import Files
        from nessie_cli.workspace.environment import of_s3

        merger = TableMerger(
            Files(of_s3()),
            description,
            commits=commits,
            is_serializable=app.setting(ISOLATION) == "serializable",
            refuses_same_keys=app.setting(IDENTIFIERS) == "conflict",
            decided=decided,
        )
        return merger.merge(do, merging)

    return combined
