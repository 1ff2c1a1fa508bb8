"""`nessie transplant`, alias `nessie cherry-pick`."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.commands.merge import Behavior, DryRun, ExpectedHash, FollowRenames, Message, Ours, Resolve, Theirs
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.errors.resolutions import resolving
from nessie_cli.cli.merging import BehaviorChoice, Choices, merge_options, merge_resolutions, refuse_strangers, show_result
from nessie_cli.cli.once import once
from nessie_cli.cli.walks import commits_to_transplant
from nessie_cli.cli.words import refuse_empty
from nessie_cli.commitspec import CommitSpec
from nessie_cli.model import ContentKey, KeyRange

EXAMPLES = (
    "nessie transplant 8f31c0de",
    "nessie transplant main..feature --onto release",
    "nessie cherry-pick feature~1 feature --theirs db.sales.orders",
)


def transplant(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="REV|RANGE...", help="Commits, oldest first, or ranges of them.")],
    *,
    onto: Annotated[str | None, typer.Option("--onto", "-b", metavar="REF", help="The branch to write to (the current one).")] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", metavar="REF", help="The branch that hashes are taken from.")] = None,
    message: Message = None,
    dry_run: DryRun = False,
    behavior: Behavior = BehaviorChoice.NORMAL,
    ours: Ours = None,
    theirs: Theirs = None,
    resolve: Resolve = None,
    follow_renames: FollowRenames = False,
    expected_hash: ExpectedHash = None,
) -> None:
    """Apply commits to a branch once more, each as a commit of its own.

    Messages, authors and properties are kept; -m replaces the message of a single commit.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie transplant REV|RANGE... [--onto REF] [--expected-hash H]", *words, onto, source, expected_hash)
    branch = onto or call.reference_name()
    repository = call.repository()
    if source:
        repository.reference(source)
    commits = commits_to_transplant(repository, [call.revision_range(word) for word in words])
    choices = Choices(message, dry_run, behavior, ours or (), theirs or (), resolve or (), follow_renames, expected_hash=expected_hash)
    refuse_strangers(choices.ours, lambda keys: _changed(call, commits, keys))
    options = merge_options(call, branch, choices, commits=commits)
    with resolving(lambda _: merge_resolutions(call, branch)), once(call, "transplant", branch, commits, options, dry_run=dry_run) as request_id:
        result = repository.transplant(branch, commits, replace(options, request_id=request_id))
    show_result(call, result, "transplanted", f"{len(commits)} commit{'' if len(commits) == 1 else 's'}")


def _changed(call: Invocation, commits: Sequence[str], keys: KeyRange) -> Iterator[ContentKey]:
    repository = call.repository()
    for commit in commits:
        for entry in repository.diff(repository.commit_at(CommitSpec(None, commit)).parent, commit, keys):
            yield entry.key
