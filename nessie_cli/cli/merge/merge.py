"""`nessie merge`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.merge.advice import conflicts_of_merge
from nessie_cli.cli.merge.behaviors import (
    is_empty,
    merge_options,
    meta_of_merge,
    refuse_unknown,
    states_of_merge,
)
from nessie_cli.cli.merge.combining import combining, table_files
from nessie_cli.cli.merge.commits import pinned_source, pinned_word
from nessie_cli.cli.merge.options import WORDS_OF_MERGES, MergingOptions
from nessie_cli.cli.merge.outcome import Merged, print_outcome, refuse_deep_write, with_differences
from nessie_cli.cli.merge.patterns import deciding, patterns_of
from nessie_cli.cli.staging.once import once
from nessie_cli.model import MergeResult
from nessie_cli.repository.changes import MergeOptions

EXAMPLES = (
    "nessie merge feature",
    "nessie merge feature --into main -m 'orders: new schema' --dry-run",
    "nessie merge feature --dry-run --deep",
    "nessie merge feature --theirs db.sales.orders --ours db.sales.items",
    "nessie merge feature --resolve db.sales.orders=orders.json --expected-hash 8f31c0de",
)


class Options(MergingOptions, frozen=True, kw_only=True):
    """Merge the changes of a branch into another, as one commit.

    Never fast-forwards. If one side renamed a table and the other changed it, the merge does both.
    If anything conflicts, nothing is written, and the exit status is 3. `nessie resolve merge FROM`
    resolves conflicts one by one.

    Prints the keys that the merge changes or that a decision keeps, each with its result (merged,
    combined, theirs or ours) and the snapshot, version or type of its content on the target before
    the merge (ours) and on the source (theirs). The files of a table that both sides changed are
    combined if that is safe; FILES and ROWS are what this adds and removes.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        **WORDS_OF_MERGES,
        "message": "Default: in the style of git, such as Merge branch 'x' into main.",
    }
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The branch, tag or commit to merge.")
    ]
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            "--onto",
            "-b",
            metavar="REF",
            help="The branch to merge into. Default: the current branch.",
        ),
    ] = None
    unrelated: Annotated[
        bool,
        typer.Option("--unrelated", help="Merge even if the histories share no commit."),
    ] = False


def run(options: Options, app: Invocation) -> Merged:
    """Merges, or raises `MergeConflict` with every conflict."""
    refuse_empty(
        "nessie merge FROM [--into REF] [--expected-hash H]",
        options.source,
        options.into,
        options.expected_hash,
    )
    refuse_deep_write(deep=options.deep, dry_run=options.dry_run)
    branch = options.into or app.reference_name()
    repository, source = app.repository(), app.revision(options.source)

    commit = repository.resolve(source)
    hash_, pinned = commit.hash, pinned_source(source, commit)
    refuse_unknown(repository, options, states_of_merge(repository, branch, hash_))
    meta = meta_of_merge(app, options.message, options.source, branch)
    merging = replace(
        merge_options(app, branch, options, meta),
        unrelated=options.unrelated or is_empty(repository, branch),
        dry_run=options.dry_run,
    )
    patterns = patterns_of(options, options.behavior)

    def merge_with(decided: MergeOptions) -> MergeResult:
        with once(app, "merge", branch, hash_, decided, dry_run=options.dry_run) as request_id:
            # Decisions and combined tables are about this state of the source.
            return repository.merge(branch, pinned, decided, request_id=request_id)

    word = pinned_word(pinned)
    files = table_files(dry_run=True) if options.deep else None
    with conflicts_of_merge(app, branch, options.source, pinned={options.source: word}):
        combined = combining(
            app, merge_with, options, f"merge of {hash_} into {branch}", files=files
        )
        outcome = deciding(combined, merging, patterns)
    merge = Merged(outcome=outcome, verb="merged", source=options.source, source_hash=hash_)
    return with_differences(merge, app, files) if files else merge


show = print_outcome
