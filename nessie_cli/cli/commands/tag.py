"""`nessie tag`."""

import typer

from nessie_cli.cli.commands.branch import (
    Assign,
    Contains,
    Delete,
    DryRun,
    ExpectedHash,
    IfExists,
    IfNotExists,
    Listing,
    Rename,
    Words,
    Yes,
)
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.references import Wishes, work_on_references
from nessie_cli.model import ReferenceType

EXAMPLES = ("nessie tag", "nessie tag v1 main~1", "nessie tag -f v1 main", "nessie tag -m v1 release-1", "nessie tag -d release-1")


def tag(
    ctx: typer.Context,
    words: Words = None,
    *,
    listing: Listing = False,
    contains: Contains = None,
    delete: Delete = False,
    rename: Rename = False,
    assign: Assign = False,
    if_exists: IfExists = False,
    if_not_exists: IfNotExists = False,
    expected_hash: ExpectedHash = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """List, create, delete, rename or assign tags.

    With -v the list shows the commit of each one.
    """
    wishes = Wishes(words or [], listing, contains, delete, rename, assign, if_exists, if_not_exists, expected_hash, yes, dry_run)
    work_on_references(Invocation.of(ctx), ReferenceType.TAG, wishes)
