"""`nessie branch`, and the options that it shares with `nessie tag`."""
# ruff: noqa: ARG001 (the parser's parameters are read together, from `ctx.params`)

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.references import wishes_of, work_on_references
from nessie_cli.model import ReferenceType

EXAMPLES = (
    "nessie branch -v --sort -time",
    "nessie branch --no-merged main",
    "nessie branch feature",
    "nessie branch hotfix v1 --if-not-exists",
    "nessie branch -m feature orders-rework",
    "nessie branch -f feature main~2 --expected-hash 8f31c0de",
    "nessie branch -d feature",
)

Words = Annotated[list[str] | None, typer.Argument(metavar="[NAME [START]]", help="What to create, and where (the current reference).")]
Listing = Annotated[bool, typer.Option("-l", "--list", help="List; with a name or a pattern only those.")]
Contains = Annotated[str | None, typer.Option("--contains", metavar="REV", help="List those that have this commit.")]
NoContains = Annotated[str | None, typer.Option("--no-contains", metavar="REV", help="List those that have it not.")]
Merged = Annotated[str | None, typer.Option("--merged", metavar="[REV]", help="List those that are merged into this one (HEAD).")]
NoMerged = Annotated[str | None, typer.Option("--no-merged", metavar="[REV]", help="List those that are not.")]
PointsAt = Annotated[str | None, typer.Option("--points-at", metavar="REV", help="List those that stand at this commit.")]
Filter = Annotated[str | None, typer.Option("--filter", metavar="CEL", help="List those that this is true for: `ref`, `commit`, `refMeta`.")]
Sort = Annotated[str | None, typer.Option("--sort", metavar="KEY", help="List by name, time, ahead or behind; -time: newest first.")]
Current = Annotated[bool, typer.Option("--show-current", help="Print the name of the current reference.")]
Extended = Annotated[bool, typer.Option("-x", "--extended", help="List with ahead, behind and last commit, as -v does.")]
Delete = Annotated[bool, typer.Option("-d", "--delete", help="Delete the named ones.")]
DeleteAll = Annotated[bool, typer.Option("-D", hidden=True, help="Delete the named ones, and do not ask.")]
Rename = Annotated[bool, typer.Option("-m", "--move", help="Rename: OLD NEW.")]
Assign = Annotated[bool, typer.Option("-f", "--force", help="Point elsewhere: NAME TARGET.")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="A name that does not exist is no error.")]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="A name that exists already is no error.")]
ExpectedHash = Annotated[str | None, typer.Option("--expected-hash", "-c", metavar="H", help="Only if it stands at this commit now.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, even where commits are lost from sight.")]
HashOnRef = Annotated[str | None, typer.Option("-o", "--hash-on-ref", metavar="HASH", hidden=True)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be created, deleted, renamed or assigned, and do nothing.")]


def branch(
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
    """List, create, delete, rename or assign branches.

    With -v the list says how far ahead and behind of the default branch each one is, and its last commit. Both are counted along first parents, as
    the REST API does: a branch that was merged is still ahead by its own commits.
    """
    work_on_references(Invocation.of(ctx), ReferenceType.BRANCH, wishes_of(ctx.params))
