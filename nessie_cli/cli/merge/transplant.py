"""`nessie transplant`, alias `nessie cherry-pick`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.merge.advice import conflicts_of_merge
from nessie_cli.cli.merge.behaviors import (
    merge_options,
    meta_of_transplant,
    refuse_unknown,
    states_of_transplant,
)
from nessie_cli.cli.merge.combining import combining, table_files
from nessie_cli.cli.merge.commits import commits_to_transplant, pinned_commits
from nessie_cli.cli.merge.options import WORDS_OF_MERGES, MergingOptions
from nessie_cli.cli.merge.outcome import (
    Merged,
    print_outcome,
    refuse_deep_write,
    with_differences,
)
from nessie_cli.cli.merge.patterns import deciding, patterns_of
from nessie_cli.cli.staging.once import once
from nessie_cli.model import MergeResult
from nessie_cli.render.text import counted
from nessie_cli.repository.changes import MergeOptions

EXAMPLES = (
    "nessie transplant 8f31c0de",
    "nessie transplant main..feature --onto release",
    "nessie cherry-pick feature~4 feature~2..feature --theirs db.sales.orders",
)


class Options(MergingOptions, frozen=True, kw_only=True):
    """Copy commits onto a branch, each as a new commit (cherry-pick).

    Each commit keeps its authors, author time and properties, and its message unless -m is given.
    If one commit conflicts, none is written, and the exit status is 3. `nessie resolve transplant
    REV|RANGE...` resolves conflicts one by one.

    --ours and --behavior drop keep ours only for contents in conflict. Changes without a conflict
    are applied. A commit whose changes the branch already has is skipped.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        **WORDS_OF_MERGES,
        "ours": "Keep the target branch's state of this content, if it conflicts.",
        "drop": "drop: keep ours if the key conflicts.",
        "message": "Only for a single commit. Default: each commit keeps its message.",
    }
    revisions: Annotated[
        list[str],
        typer.Argument(
            metavar="REV|RANGE...",
            help="Commits and ranges, in the order in which they are applied. The commits of a"
            " range are applied oldest first.",
        ),
    ]
    onto: Annotated[
        str | None,
        typer.Option(
            "--onto",
            "--into",
            "-b",
            metavar="REF",
            help="The branch to write to. Default: the current branch.",
        ),
    ] = None


def run(options: Options, app: Invocation) -> Merged:
    """Transplants, or raises `MergeConflict` for the first commit with conflicts."""
    usage = "nessie transplant REV|RANGE... [--onto REF] [--expected-hash H]"
    refuse_empty(usage, *options.revisions, options.onto, options.expected_hash)
    refuse_deep_write(deep=options.deep, dry_run=options.dry_run)
    branch = options.onto or app.reference_name()
    repository = app.repository()
    commits = commits_to_transplant(app, options.revisions)

    refuse_unknown(repository, options, states_of_transplant(repository, branch, commits))
    meta = meta_of_transplant(app, options.message, commits)
    merging = replace(
        merge_options(app, branch, options, meta), any_order=True, dry_run=options.dry_run
    )
    pinned = pinned_commits(app, options.revisions)

    def transplant_with(decided: MergeOptions) -> MergeResult:
        request = (branch, commits, decided)
        with once(app, "transplant", *request, dry_run=options.dry_run) as request_id:
            return repository.transplant(branch, commits, decided, request_id=request_id)

    files = table_files(dry_run=True) if options.deep else None
    with conflicts_of_merge(app, branch, " ".join(options.revisions), commits, pinned):
        combined = combining(
            app,
            transplant_with,
            options,
            f"transplant onto {branch}",
            commits=len(commits),
            files=files,
        )
        outcome = deciding(combined, merging, patterns_of(options, options.behavior))
    source = counted(len(commits) - len(outcome.skipped) or len(commits), "commit")
    merge = Merged(outcome=outcome, verb="transplanted", source=source)
    return with_differences(merge, app, files) if files else merge


show = print_outcome
