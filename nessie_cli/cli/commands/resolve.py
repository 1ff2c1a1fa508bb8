"""`nessie resolve`."""

from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.commands.merge import ExpectedHash, FollowRenames, Message, Ours, Resolve, Theirs
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.errors.resolutions import resolving
from nessie_cli.cli.merging import Choices, contents_of_files, merge_options, merge_resolutions
from nessie_cli.cli.resolving import Decisions
from nessie_cli.cli.settling import Work, settle_batch, settle_merge
from nessie_cli.cli.words import refuse_empty
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.batch import Batch

EXAMPLES = (
    "nessie resolve",
    "nessie resolve merge feature --into main",
    "nessie resolve transplant main..feature --onto main",
    "nessie resolve revert main~1 -m 'take the load back'",
    "nessie resolve --theirs db.orders --ours db.items -m 'nightly load'",
)
USAGE = "nessie resolve [merge FROM | transplant REV|RANGE... | revert REV|RANGE]"


def resolve(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[merge FROM | transplant REV|RANGE... | revert REV|RANGE]", help="What is in conflict; without it the staged batch."),
    ] = None,
    *,
    into: Annotated[str | None, typer.Option("--into", "--onto", "-b", metavar="REF", help="The branch to write to (the current one).")] = None,
    message: Message = None,
    ours: Ours = None,
    theirs: Theirs = None,
    resolve: Resolve = None,
    follow_renames: FollowRenames = False,
    expected_hash: ExpectedHash = None,
) -> None:
    """Settle the conflicts of the batch, of a merge, transplant or revert, one by one.

    On a terminal each conflict that no option decides is shown and asked about. At the end it is done, and the batch is committed where -m
    gives a message; as long as a conflict is skipped, nothing is done.
    """
    call = Invocation.of(ctx)
    given = words or []
    refuse_empty(USAGE, *given, into, expected_hash)
    decisions = Decisions(ours or (), theirs or (), contents_of_files(resolve or ()))
    choices = Choices(message, follow_renames=follow_renames, expected_hash=expected_hash)
    verb, *what = given or [""]
    if (into or follow_renames or expected_hash) and verb not in ("merge", "transplant", "cherry-pick"):
        raise InvalidInput("--into, --follow-renames and --expected-hash belong to `nessie resolve merge FROM` and `nessie resolve transplant REV`")
    branch = into or call.reference_name()
    if verb in ("transplant", "cherry-pick") and what:
        _resolve_transplant(call, branch, what, choices, decisions)
    elif verb == "merge" and len(what) == 1:
        _resolve_merge(call, branch, what[0], choices, decisions)
    elif verb == "revert" and len(what) == 1:
        _resolve_revert(call, what[0], decisions, message)
    elif verb:
        raise InvalidInput(f"{' '.join(given)!r} is not understood: {USAGE}")
    else:
        _resolve_batch(call, decisions, message)


def _resolve_merge(call: Invocation, branch: str, source: str, choices: Choices, decisions: Decisions) -> None:
    repository, meant = call.repository(), call.revision(source)
    work = Work(lambda options: repository.merge(branch, meant, options), "merged", source)
    with resolving(lambda _: merge_resolutions(call, branch)):
        settle_merge(call, work, merge_options(call, branch, choices, source), decisions)


def _resolve_transplant(call: Invocation, branch: str, words: Sequence[str], choices: Choices, decisions: Decisions) -> None:
    from nessie_cli.cli.walks import commits_to_transplant

    repository = call.repository()
    commits = commits_to_transplant(repository, [call.revision_range(word) for word in words])
    source = f"{len(commits)} commit{'' if len(commits) == 1 else 's'}"
    work = Work(lambda options: repository.transplant(branch, commits, options), "transplanted", source)
    with resolving(lambda _: merge_resolutions(call, branch)):
        settle_merge(call, work, merge_options(call, branch, choices, commits=commits), decisions)


def _resolve_revert(call: Invocation, words: str, decisions: Decisions, message: str | None) -> None:
    from nessie_cli.cli.commit_meta import message_of, meta_of
    from nessie_cli.cli.committed import print_committed
    from nessie_cli.cli.reverting import batch_of, taken_back
    from nessie_cli.cli.submission import Submission, Submitted, head_of_branch, submit

    branch = call.reference_name()
    head = head_of_branch(call.repository(), branch)
    what = taken_back(call, words)
    batch = batch_of(call.repository(), what, head)
    with resolving(lambda _: merge_resolutions(call, branch)):
        staged = settle_batch(call, batch, branch, decisions)
    if not staged:
        raise InvalidInput("nothing is left to take back: every key was left as it is now")
    meta = meta_of(call, message_of([message] if message is not None else None, None) or what.message)
    batch = Batch(batch.begun_at, staged, batch.request_id)
    with resolving(lambda _: merge_resolutions(call, branch)):
        result = submit(call, batch, Submission(branch, meta))
    print_committed(call, Submitted(result, len(batch.keys)), branch)


def _resolve_batch(call: Invocation, decisions: Decisions, message: str | None) -> None:
    from nessie_cli.cli.batch_view import batch_document, changes_of, print_changes
    from nessie_cli.cli.commit_meta import message_of, meta_of
    from nessie_cli.cli.committed import print_committed
    from nessie_cli.cli.submission import NOTHING_STAGED, Submission, refuse_elsewhere, settle, submit_file

    branch = call.reference_name()
    text = message_of([message] if message is not None else None, None)
    with call.batch_file().changing() as file:
        batch, _ = settle(call, file)
        if batch is None:
            raise InvalidInput(NOTHING_STAGED)
        refuse_elsewhere(call, batch, branch)
        staged = settle_batch(call, batch, branch, decisions)
        left = replace(batch, staged=staged, request_id=None) if staged else None
        file.write(left)
        if text is not None and staged:
            print_committed(call, submit_file(call, file, Submission(branch, meta_of(call, text))), branch)
            return
    if call.wants_json:
        call.answer(batch_document(left, branch))
    else:
        print_changes(call, changes_of(staged))
        call.note("`nessie commit -m MSG` commits" if staged else "nothing is left to commit")
