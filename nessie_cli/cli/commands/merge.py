"""`nessie merge`, and the options that it shares with `nessie transplant`."""

from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.errors.resolutions import resolving
from nessie_cli.cli.merging import BehaviorChoice, Choices, merge_options, merge_resolutions, refuse_strangers, show_result
from nessie_cli.cli.once import once
from nessie_cli.cli.words import refuse_empty

EXAMPLES = (
    "nessie merge feature",
    "nessie merge feature --into main -m 'orders: new schema' --dry-run",
    "nessie merge feature --theirs db.sales.orders --ours db.sales.items",
    "nessie merge feature --resolve db.sales.orders=orders.json --expected-hash 8f31c0de",
)

Message = Annotated[str | None, typer.Option("-m", "--message", metavar="MSG", help="The message of the commit.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and write nothing.")]
Behavior = Annotated[BehaviorChoice, typer.Option(case_sensitive=False, help="For keys not named: merge, take the source's, keep the target's.")]
Ours = Annotated[list[str] | None, typer.Option("--ours", metavar="KEY", help="Keep the target's state of this key.")]
Theirs = Annotated[list[str] | None, typer.Option("--theirs", metavar="KEY", help="Take the source's state of this key.")]
Resolve = Annotated[list[str] | None, typer.Option("--resolve", metavar="KEY=FILE", help="Write this content (REST JSON; - is stdin).")]
FollowRenames = Annotated[bool, typer.Option("--follow-renames", help="Combine a rename on one side with a change on the other.")]
ExpectedHash = Annotated[str | None, typer.Option("--expected-hash", "-c", metavar="H", help="A commit that the target must have.")]


def merge(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The branch, tag or commit to merge.")],
    *,
    into: Annotated[str | None, typer.Option("--into", "-b", metavar="REF", help="The branch to merge into (the current one).")] = None,
    message: Message = None,
    dry_run: DryRun = False,
    behavior: Behavior = BehaviorChoice.NORMAL,
    ours: Ours = None,
    theirs: Theirs = None,
    resolve: Resolve = None,
    follow_renames: FollowRenames = False,
    unrelated: Annotated[bool, typer.Option("--unrelated", help="Merge also what shares no commit with the branch.")] = False,
    expected_hash: ExpectedHash = None,
) -> None:
    """Merge the changes of a branch into another, as one commit.

    Prints each key that the source changed: behavior, content of the source, content of the target before, conflict.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie merge FROM [--into REF] [--expected-hash H]", source, into, expected_hash)
    branch = into or call.reference_name()
    choices = Choices(message, dry_run, behavior, ours or (), theirs or (), resolve or (), follow_renames, unrelated, expected_hash)
    repository, meant = call.repository(), call.revision(source)
    refuse_strangers(choices.ours, lambda keys: (e.key for e in repository.diff(repository.merge_base(branch, meant), meant, keys)))
    options = merge_options(call, branch, choices, source)
    with (
        resolving(lambda _: merge_resolutions(call, branch)),
        once(call, "merge", branch, repository.resolve(meant).hash, options, dry_run=dry_run) as request_id,
    ):
        result = repository.merge(branch, meant, replace(options, request_id=request_id))
    show_result(call, result, "merged", source)
