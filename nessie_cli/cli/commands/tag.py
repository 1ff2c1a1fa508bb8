"""`nessie tag`."""
# ruff: noqa: ARG001 (the parser's parameters are read together, from `ctx.params`)

import typer

from nessie_cli.cli.commands.branch import (
    Assign,
    Contains,
    Current,
    Delete,
    DeleteAll,
    DryRun,
    ExpectedHash,
    Extended,
    Filter,
    HashOnRef,
    IfExists,
    IfNotExists,
    Listing,
    Merged,
    NoContains,
    NoMerged,
    PointsAt,
    Rename,
    Sort,
    Words,
    Yes,
)
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.references import wishes_of, work_on_references
from nessie_cli.model import ReferenceType

EXAMPLES = (
    "nessie tag",
    "nessie tag --sort -time --contains main~2",
    "nessie tag v1 main~1",
    "nessie tag -f v1 main",
    "nessie tag -m v1 release-1",
    "nessie tag -d release-1",
)


def tag(
    ctx: typer.Context,
    words: Words = None,
    *,
    listing: Listing = False,
    contains: Contains = None,
    no_contains: NoContains = None,
    merged: Merged = None,
    no_merged: NoMerged = None,
    points_at: PointsAt = None,
    filter_: Filter = None,
    sort: Sort = None,
    show_current: Current = False,
    extended: Extended = False,
    delete: Delete = False,
    delete_all: DeleteAll = False,
    rename: Rename = False,
    assign: Assign = False,
    if_exists: IfExists = False,
    if_not_exists: IfNotExists = False,
    expected_hash: ExpectedHash = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    hash_on_ref: HashOnRef = None,
) -> None:
    """List, create, delete, rename or assign tags.

    With -v the list shows the commit of each one.
    """
    work_on_references(Invocation.of(ctx), ReferenceType.TAG, wishes_of(ctx.params))
