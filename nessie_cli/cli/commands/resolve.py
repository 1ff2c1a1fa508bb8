"""`nessie resolve`."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.command import print_result
from nessie_cli.cli.app.result import print_json
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.merge.behaviors import contents_of_files, merge_options, meta_of_merge, meta_of_transplant
from nessie_cli.cli.merge.decisions import Decisions
from nessie_cli.cli.merge.inverse import batch_of, reverted
from nessie_cli.cli.merge.options import Behavior, DecisionOptions
from nessie_cli.cli.merge.outcome import Merge, print_outcome
from nessie_cli.cli.merge.resolutions import conflicts_of_merge
from nessie_cli.cli.merge.settling import settle_batch, settle_merge
from nessie_cli.cli.merge.sides import OF_BATCH, OF_MERGE, OF_REVERT, Sides
from nessie_cli.cli.staging import batch as staged_batch
from nessie_cli.cli.staging.batch import changes_of, print_changes
from nessie_cli.cli.staging.commit_meta import message_of, meta_of
from nessie_cli.cli.staging.committed import Committed, print_committed
from nessie_cli.cli.submission import NOTHING_STAGED, Submission, Submitted, head_of_branch, refuse_elsewhere, settle, submit, submit_file
from nessie_cli.cli.walks import commits_to_transplant
from nessie_cli.cli.words import refuse_empty
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, CommitResult, MergeResult
from nessie_cli.render.text import counted
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.workspace.batch import Batch
from nessie_cli.workspace.staging import StagedList

EXAMPLES = (
    "nessie resolve",
    "nessie resolve merge feature --into main",
    "nessie resolve transplant main..feature --onto main",
    "nessie resolve revert main~1 -m 'take the load back'",
    "nessie resolve --proposed db.orders --current db.items -m 'nightly load'",
)
USAGE = "nessie resolve [merge FROM | transplant REV|RANGE... | revert REV|RANGE]"
_MERGING = ("merge", "transplant", "cherry-pick")
Keys = list[str] | None


class Wishes(NamedTuple):
    """The options of one call."""

    options: DecisionOptions
    into: str | None
    unrelated: bool
    current: Sequence[str]
    proposed: Sequence[str]


def resolve(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[merge FROM | transplant REV|RANGE... | revert REV|RANGE]", help="What is in conflict. Default: the staged batch."),
    ] = None,
    *,
    into: Annotated[
        str | None, typer.Option("--into", "--onto", "-b", metavar="REF", help="The branch to write to. Default: the current one.")
    ] = None,
    message: Annotated[str | None, typer.Option("-m", "--message", metavar="MSG", help="The commit message.")] = None,
    current: Annotated[
        Keys, typer.Option("--current", metavar="KEY", help="Batch: keep the current state of this key, drop the staged change.")
    ] = None,
    proposed: Annotated[Keys, typer.Option("--proposed", metavar="KEY", help="Batch: keep the staged change of this key.")] = None,
    ours: Annotated[Keys, typer.Option("--ours", metavar="KEY", help="Merge, transplant, revert: keep our state of this key.")] = None,
    theirs: Annotated[Keys, typer.Option("--theirs", metavar="KEY", help="Merge, transplant, revert: take their state of this key.")] = None,
    resolve: Annotated[Keys, typer.Option("--resolve", metavar="KEY=FILE", help="Write this content (REST JSON; - is stdin).")] = None,
    behavior: Annotated[Behavior, typer.Option(case_sensitive=False, help="For keys that no option names: merge, take theirs, or keep ours.")] = (
        Behavior.NORMAL
    ),
    follow_renames: Annotated[bool, typer.Option("--follow-renames", help="Combine a rename on one side with a change on the other.")] = False,
    unrelated: Annotated[bool, typer.Option("--unrelated", help="Merge even if the histories share no commit.")] = False,
    expected_hash: Annotated[
        str | None, typer.Option("--expected-hash", "-c", metavar="H", help="Fail unless the target branch has this commit.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", metavar="REF", hidden=True)] = None,
) -> None:
    """Resolve the conflicts of the batch, of a merge, transplant or revert, one by one.

    On a terminal the command shows each conflict that no option decides and asks. Then it does the merge, or commits the batch if -m gives a
    message. Nothing is written as long as a conflict of a merge is skipped.
    """
    call = Invocation.of(ctx)
    given = words or []
    refuse_empty(USAGE, *given, into, expected_hash)
    options = DecisionOptions(
        ours=ours,
        theirs=theirs,
        message=message,
        behavior=behavior,
        resolve=resolve,
        follow_renames=follow_renames,
        expected_hash=expected_hash,
    )
    wishes = Wishes(options, into, unrelated, current or (), proposed or ())
    verb, *what = given or [""]
    if (into or follow_renames or expected_hash or unrelated or source or behavior is not Behavior.NORMAL) and verb not in _MERGING:
        raise InvalidInput("--into, --follow-renames and --expected-hash belong to `nessie resolve merge FROM` and `nessie resolve transplant REV`")
    if verb and (current or proposed):
        raise InvalidInput(f"--current and --proposed belong to the batch; for a {verb} they are --ours and --theirs")
    if verb in _MERGING[1:] and what:
        _resolve_transplant(call, what, wishes)
    elif verb == "merge" and len(what) == 1:
        _resolve_merge(call, what[0], wishes)
    elif verb == "revert" and len(what) == 1:
        _resolve_revert(call, what[0], wishes)
    elif verb:
        raise InvalidInput(f"{' '.join(given)!r} is not understood: {USAGE}")
    else:
        _resolve_batch(call, wishes)


def _decisions(wishes: Wishes, sides: Sides) -> Decisions:
    options = wishes.options
    return Decisions(sides, options.ours or (), options.theirs or (), contents_of_files(options.resolve))


def _undecided(wishes: Wishes) -> DecisionOptions:
    """The options of the merge itself; the decisions apply only to keys in conflict."""
    options = wishes.options
    return DecisionOptions(
        message=options.message, behavior=options.behavior, follow_renames=options.follow_renames, expected_hash=options.expected_hash
    )


def _print_committed(call: Invocation, submitted: Submitted) -> None:
    print_result(Committed.of(submitted), print_committed, call.output)


def _print_merge(call: Invocation, merge: Merge) -> None:
    print_result(merge, print_outcome, call.output)


def _resolve_merge(call: Invocation, source: str, wishes: Wishes) -> None:
    branch = wishes.into or call.reference_name()
    repository, revision = call.repository(), call.revision(source)

    def do(options: MergeOptions) -> MergeResult:
        with conflicts_of_merge(call, branch, source):
            return repository.merge(branch, revision, options)

    meta = meta_of_merge(call, wishes.options.message, source, branch)
    options = replace(merge_options(call, branch, _undecided(wishes), meta), unrelated=wishes.unrelated)
    outcome = settle_merge(call, do, options, _decisions(wishes, OF_MERGE))
    _print_merge(call, Merge(outcome=outcome, verb="merged", source=source))


def _resolve_transplant(call: Invocation, words: Sequence[str], wishes: Wishes) -> None:
    branch = wishes.into or call.reference_name()
    repository = call.repository()
    commits = commits_to_transplant(repository, [call.revision_range(word) for word in words])

    def do(options: MergeOptions) -> MergeResult:
        with conflicts_of_merge(call, branch, " ".join(words)):
            return repository.transplant(branch, commits, options)

    meta = meta_of_transplant(call, wishes.options.message, commits)
    options = replace(merge_options(call, branch, _undecided(wishes), meta), any_order=True)
    outcome = settle_merge(call, do, options, _decisions(wishes, OF_MERGE))
    _print_merge(call, Merge(outcome=outcome, verb="transplanted", source=counted(len(commits), "commit")))


def _resolve_revert(call: Invocation, words: str, wishes: Wishes) -> None:
    branch = call.reference_name()
    head = head_of_branch(call.repository(), branch)
    what = reverted(call, words)
    batch = batch_of(call.repository(), what, head)

    def commit(staged: StagedList, submission: Submission) -> CommitResult:
        with conflicts_of_merge(call, branch):
            return submit(call, Batch(batch.begun_at, staged, batch.request_id), submission)

    trial = Submission(branch, CommitMeta(""), dry_run=True)
    staged = settle_batch(call, batch.staged, branch, lambda some: commit(some, trial), _decisions(wishes, OF_REVERT))
    if not staged:
        raise InvalidInput("nothing is left to revert: every key keeps its current state")
    meta = meta_of(call, _message(wishes) or what.message)
    result = commit(staged, Submission(branch, meta))
    _print_committed(call, Submitted(result, len({item.key for item in staged})))


def _resolve_batch(call: Invocation, wishes: Wishes) -> None:
    branch = call.reference_name()
    text = _message(wishes)
    decisions = _batch_decisions(call, wishes)
    with call.batch_file().changing() as file:
        batch, _ = settle(call, file)
        if batch is None:
            raise InvalidInput(NOTHING_STAGED)
        refuse_elsewhere(call, batch, branch)
        trial = Submission(branch, CommitMeta(""), dry_run=True)
        begun_at = batch.begun_at
        staged = settle_batch(call, batch.staged, branch, lambda some: submit(call, Batch(begun_at, some), trial), decisions)
        left = replace(batch, staged=staged, request_id=None) if staged else None
        file.write(left)
        if text is not None and staged:
            _print_committed(call, submit_file(call, file, Submission(branch, meta_of(call, text))))
            return
    if call.wants_json:
        print_json(staged_batch.Batch.of(left, branch), call.output)
    else:
        print_changes(call.output, changes_of(staged))
        call.note("`nessie commit -m MSG` commits" if staged else "nothing is left to commit")


def _message(wishes: Wishes) -> str | None:
    message = wishes.options.message
    return message_of([message] if message is not None else None, None)


def _batch_decisions(call: Invocation, wishes: Wishes) -> Decisions:
    """The decisions about a batch; `--ours` and `--theirs` still work."""
    options = wishes.options
    for old, new, keys in (("--ours", "--current", options.ours), ("--theirs", "--proposed", options.theirs)):
        if keys:
            call.output.note(f"warning: for a batch {old} is called {new}")
    ours, theirs = (*wishes.current, *(options.ours or ())), (*wishes.proposed, *(options.theirs or ()))
    return Decisions(OF_BATCH, ours, theirs, contents_of_files(options.resolve))
