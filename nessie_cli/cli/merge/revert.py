"""`nessie revert`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.advice import conflicts_of_merge
from nessie_cli.cli.merge.combining import combining
from nessie_cli.cli.merge.expected import expected_commit
from nessie_cli.cli.merge.inverse import (
    decisions_of,
    operations_of,
    revert,
    reverted,
    split_by_revert,
)
from nessie_cli.cli.merge.options import SideOptions
from nessie_cli.cli.merge.patterns import deciding, patterns_of
from nessie_cli.cli.merge.reverted import RevertResult, print_revert
from nessie_cli.cli.staging.batch import BatchResult, changes_of, print_changes
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs, meta_of
from nessie_cli.cli.staging.submission import head_of_branch, read_batch, refuse_elsewhere
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import visible
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.revisions import Revision
from nessie_cli.workspace import batch as workspace
from nessie_cli.workspace.staging import proposed

EXAMPLES = (
    "nessie revert main",
    "nessie revert 8f31c0de -m 'revert the wrong load'",
    "nessie revert main~2 --no-commit",
    "nessie revert main~3..main -m 'back to before the load'",
    "nessie revert 8f31c0de --ours db.sales.orders --dry-run",
)


class Options(SideOptions, frozen=True, kw_only=True):
    """Commit the inverse of a commit.

    A range A..B means the commits after A up to B; one commit reverts them all. A table that was
    renamed since is reverted under its present key. If a table was changed otherwise since, or
    namespaces prevent the change, it is a conflict, and nothing is written. --ours keeps the
    current state of a table, and --theirs takes the state before the reverted commits. KEY is the
    key on the branch, else the key before or after the commits. `nessie resolve revert REV`
    resolves conflicts one by one. A table that was deleted comes back with its content id. Staged
    changes stay staged and are not committed.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        "ours": "Keep the current state of this table: a key or a content id.",
        "theirs": "Take the state of this table before the reverted commit.",
    }
    revision: Annotated[
        str,
        typer.Argument(
            metavar="REV|RANGE",
            help="The commit or range to revert. A merge is reverted against its first parent.",
        ),
    ]
    message: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--message",
            metavar="MSG",
            help="The commit message; repeat for paragraphs. Default: a message that names the"
            " reverted commit or range.",
        ),
    ] = None
    expected_hash: Annotated[
        str | None,
        typer.Option(
            "--expected-hash",
            "-c",
            metavar="H",
            help="Fail unless this commit is in the first-parent history of the branch, and no key"
            " to be changed or decided has changed since.",
        ),
    ] = None
    no_commit: Annotated[
        bool, typer.Option("--no-commit", "-n", help="Stage the inverse, and do not commit it.")
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check for conflicts, and write nothing."),
    ] = False


def run(options: Options, app: Invocation) -> BatchResult | RevertResult:
    """Reverts, or raises `ReferenceConflict` with every conflict."""
    refuse_empty("nessie revert REV|RANGE", options.revision, options.expected_hash)
    if options.no_commit and (options.dry_run or options.message or app.options.no_verify):
        other = "--dry-run" if options.dry_run else "-m" if options.message else "--no-verify"
        raise InvalidInput(f"-n and {other} cannot be used together: -n makes no commit")
    repository, branch = app.repository(), app.reference_name()
    expected = expected_commit(app, options.expected_hash)
    head_of_branch(repository, branch)  # a tag is refused first
    to_revert, behaviors = reverted(app, options.revision), decisions_of(options)
    _refuse_parent(app, options.message, to_revert.commits.last)
    message = message_of_paragraphs(options.message) if options.message else to_revert.message
    merging = MergeOptions(
        meta_of(app, message), behaviors, expected_hash=expected, dry_run=options.dry_run
    )

    def revert_with(decided: MergeOptions) -> BatchResult | RevertResult:
        if not options.no_commit:
            return revert(app, branch, to_revert, decided)
        now = Reference(ReferenceType.BRANCH, branch, head_of_branch(repository, branch))
        staged = operations_of(app, now, to_revert, decided.behaviors, decided.expected_hash)
        inverse = workspace.StagedBatch(now.hash, staged)
        split = split_by_revert(repository, now.hash, to_revert, staged)
        if decided.dry_run:
            return replace(BatchResult.of(inverse, branch, inverse.keys), split_runs=split)
        return replace(_stage(app, inverse, branch), split_runs=split)

    with conflicts_of_merge(app, branch, pinned={options.revision: to_revert.revision}):
        combined = combining(
            app, revert_with, options, f"revert of {to_revert.revision}", reverts=to_revert
        )
        return deciding(combined, merging, patterns_of(options))


def show(result: BatchResult | RevertResult, output: Output) -> None:
    """Prints the changes, then the commit, if there is one."""
    if isinstance(result, RevertResult):
        print_revert(result, output)
        return
    if not result.touched:
        output.note(f"nothing was staged: {visible(result.reference)} keeps its contents")
        return
    touched = {str(key) for key in result.touched}
    print_changes(output, (change for change in changes_of(result.staged) if change.key in touched))
    commit = command_line(*carried(output.options), "commit", "-m", "MSG")
    output.note(f"staged for {result.reference}; `{commit}` commits")


def _refuse_parent(app: Invocation, message: list[str] | None, commit: str) -> None:
    """Raises `InvalidInput` for git's `-m 1`, which selects a parent of a merge."""
    if not message or not message[0].isdecimal():
        return
    if len(app.repository().commit_at(Revision(None, commit)).meta.parents) > 1:
        raise InvalidInput(
            f"-m {message[0]}: -m sets the message here; a merge is always reverted against its"
            " first parent"
        )


def _already_staged(
    inverse: workspace.StagedBatch, before: workspace.StagedBatch | None
) -> list[str]:
    """Returns the keys of an inverse that are staged, themselves or as a content's other key."""
    if before is None:
        return []
    keys = {key: str(key) for key in before.keys}
    staged = {content.id: item.key for item in before.staged if (content := proposed(item))}
    for item in inverse.staged:
        content = proposed(item)
        if content is not None and content.id is not None and content.id in staged:
            keys.setdefault(item.key, f"{item.key} (as {staged[content.id]})")
    return [keys[key] for key in inverse.keys if key in keys]


def _stage(app: Invocation, inverse: workspace.StagedBatch, branch: str) -> BatchResult:
    """Adds the inverse to the staged batch.

    Raises `InvalidInput` if one of its keys or contents is already staged.
    """
    with app.batch_file().changing() as file:
        before, _ = read_batch(app, file)
        if before is not None:
            refuse_elsewhere(app, before, branch)
        if not inverse.staged:
            return BatchResult.of(before, branch)
        if taken := _already_staged(inverse, before):
            raise InvalidInput(
                f"{', '.join(taken)}: already staged; `nessie commit`, `nessie stash` or `nessie"
                " reset` first"
            )
        after = workspace.StagedBatch(
            before.begun_at if before else inverse.begun_at,
            (*(before.staged if before else ()), *inverse.staged),
            branch=branch,
            store=app.store.name(),
        )
        file.write(after)
    return BatchResult.of(after, branch, inverse.keys)
