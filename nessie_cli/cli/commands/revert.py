"""`nessie revert`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.command import print_result
from nessie_cli.cli.app.result import print_json
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.merge.inverse import batch_of, reverted
from nessie_cli.cli.merge.resolutions import conflicts_of_merge
from nessie_cli.cli.staging import batch as staged_batch
from nessie_cli.cli.staging.batch import changes_of, print_changes
from nessie_cli.cli.staging.commit_meta import message_of, meta_of
from nessie_cli.cli.staging.committed import Committed, print_committed
from nessie_cli.cli.submission import Submission, Submitted, head_of_branch, submit
from nessie_cli.cli.words import refuse_empty
from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey
from nessie_cli.workspace.batch import Batch

EXAMPLES = (
    "nessie revert main",
    "nessie revert 8f31c0de -m 'take the wrong load back'",
    "nessie revert main~2 --no-commit",
    "nessie revert main~3..main -m 'back to before the load'",
    "nessie revert 8f31c0de --ours db.sales.orders --dry-run",
)


def revert(
    ctx: typer.Context,
    revision: Annotated[str, typer.Argument(metavar="REV|RANGE", help="What to revert; of a merge all that it merged.", show_default=False)],
    *,
    message: Annotated[list[str] | None, typer.Option("-m", "--message", metavar="MSG", help="The message.", show_default=False)] = None,
    no_commit: Annotated[bool, typer.Option("--no-commit", "-n", help="Only stage the inverse.")] = False,
    ours: Annotated[list[str] | None, typer.Option("--ours", metavar="KEY", help="Keep the current state of this key.")] = None,
    theirs: Annotated[list[str] | None, typer.Option("--theirs", metavar="KEY", help="Revert this key whatever its current state.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and write nothing.")] = False,
) -> None:
    """Commit the inverse of a commit; what has changed since is a conflict.

    A..B is reverted by one commit, all or nothing. What is staged stays staged and is not committed.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie revert REV|RANGE", revision)
    branch = call.reference_name()
    head = head_of_branch(call.repository(), branch)
    what = reverted(call, revision)
    _refuse_parent(call, message, what.last)
    batch = batch_of(call.repository(), what, head, tuple(map(ContentKey.parse, ours or ())), tuple(map(ContentKey.parse, theirs or ())))
    if no_commit:
        _stage(call, batch, branch)
        return
    text = message_of(message, None) or what.message
    with conflicts_of_merge(call, branch):
        result = submit(call, batch, Submission(branch, meta_of(call, text), dry_run=dry_run))
    print_result(Committed.of(Submitted(result, len(batch.keys))), print_committed, call.output)


def _refuse_parent(call: Invocation, message: list[str] | None, commit: str) -> None:
    """Raises `InvalidInput` for git's `-m 1`, which names the parent of a merge."""
    if message and message[0].isdecimal() and len(call.repository().commit_at(CommitSpec(None, commit)).meta.parents) > 1:
        raise InvalidInput(f"-m {message[0]}: -m gives the message here; which parent of a merge is meant needs no word")


def _stage(call: Invocation, batch: Batch, branch: str) -> None:
    from nessie_cli.cli.submission import refuse_elsewhere, settle

    with call.batch_file().changing() as file:
        before, _ = settle(call, file)
        if before is not None:
            refuse_elsewhere(call, before, branch)
        taken = [str(key) for key in batch.keys if before and key in before.keys]
        if taken:
            raise InvalidInput(f"{', '.join(taken)}: staged already; `nessie commit`, `nessie stash` or `nessie reset` first")
        staged = (*(before.staged if before else ()), *batch.staged)
        after = Batch(before.begun_at if before else batch.begun_at, staged, branch=branch, store=call.store.name())
        file.write(after)
    if call.wants_json:
        print_json(staged_batch.Batch.of(after, branch), call.output)
    else:
        print_changes(call.output, changes_of(batch.staged))
        call.note(f"staged for {branch}; `nessie commit -m MSG` commits")
