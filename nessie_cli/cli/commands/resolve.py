"""`nessie resolve`."""

from typing import Annotated

import typer

from nessie_cli.cli.commands.merge import ExpectedHash, FollowRenames, Message, Ours, Resolve, Theirs
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.merging import Choices, contents_of_files, merge_options, show_result
from nessie_cli.cli.resolving import Choice, Decisions
from nessie_cli.cli.words import refuse_empty
from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict
from nessie_cli.model import Conflict, ContentKey, KeyBehavior, MergeBehavior
from nessie_cli.repository.base import MergeOptions
from nessie_cli.workspace.batch import Batch
from nessie_cli.workspace.staging import StagedList

EXAMPLES = (
    "nessie resolve",
    "nessie resolve merge feature --into main",
    "nessie resolve --theirs db.orders --ours db.items -m 'nightly load'",
)
USAGE = "nessie resolve [merge FROM]"
MOST_ROUNDS = 20
"""Settling one conflict may bring up another; after so many rounds something is odd."""


def resolve(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[merge FROM]", help="The merge; without it the staged batch.")] = None,
    *,
    into: Annotated[str | None, typer.Option("--into", "-b", metavar="REF", help="The branch to merge into (the current one).")] = None,
    message: Message = None,
    ours: Ours = None,
    theirs: Theirs = None,
    resolve: Resolve = None,
    follow_renames: FollowRenames = False,
    expected_hash: ExpectedHash = None,
) -> None:
    """Settle the conflicts of the staged batch or of a merge, one by one.

    On a terminal each conflict that no option decides is shown and asked about. At the end the merge is done, and the batch is committed where -m
    gives a message; as long as a conflict is skipped, the merge is not done.
    """
    call = Invocation.of(ctx)
    given = words or []
    refuse_empty(USAGE, *given, into, expected_hash)
    decisions = Decisions(ours or (), theirs or (), contents_of_files(resolve or ()))
    if not given:
        if into or follow_renames or expected_hash:
            raise InvalidInput("--into, --follow-renames and --expected-hash belong to `nessie resolve merge FROM`")
        _resolve_batch(call, decisions, message)
    elif given[0] == "merge" and len(given) == len(("merge", "FROM")):
        branch = into or call.reference_name()
        choices = Choices(message, follow_renames=follow_renames, expected_hash=expected_hash)
        _resolve_merge(call, given[1], branch, merge_options(call, branch, choices), decisions)
    else:
        raise InvalidInput(f"{' '.join(given)!r} is not understood: {USAGE}")


def _resolve_merge(call: Invocation, source: str, branch: str, options: MergeOptions, decisions: Decisions) -> None:
    from msgspec import structs

    repository, meant = call.repository(), call.revision(source)
    conflicts: dict[ContentKey, Conflict] = {}
    for _ in range(MOST_ROUNDS):
        behaviors = [_behavior(conflicts[key], decisions) for key in decisions.of if key in conflicts]
        try:
            repository.merge(branch, meant, structs.replace(options, behaviors=behaviors, dry_run=True))
        except MergeConflict as error:
            conflicts |= {conflict.key: conflict for conflict in error.conflicts if conflict.key is not None}
            if all(conflict.key in decisions.of for conflict in error.conflicts) and behaviors:
                # What was decided does not settle it; the way out is in the diagnostics.
                raise
            decisions.refuse_strangers(list(conflicts.values()))
            if not decisions.complete(call, error):
                raise
        else:
            decisions.refuse_strangers(list(conflicts.values()))
            result = repository.merge(branch, meant, structs.replace(options, behaviors=behaviors))
            show_result(call, result, "merged", source)
            return


def _behavior(conflict: Conflict, decisions: Decisions) -> KeyBehavior:
    assert conflict.key is not None
    decision = decisions.of[conflict.key]
    if decision.content is not None:
        if conflict.actual is None:
            raise InvalidInput(f"{conflict.key}: the branch has no such content; decide by --ours or --theirs")
        return KeyBehavior(conflict.key, MergeBehavior.NORMAL, conflict.actual, decision.content.with_id(conflict.actual.id))
    return KeyBehavior(conflict.key, MergeBehavior.DROP if decision.choice is Choice.OURS else MergeBehavior.FORCE)


def _resolve_batch(call: Invocation, decisions: Decisions, message: str | None) -> None:
    from nessie_cli.cli.batch_view import batch_document, print_changes
    from nessie_cli.cli.commit_meta import message_of, meta_of
    from nessie_cli.cli.committed import print_committed
    from nessie_cli.cli.submission import NOTHING_STAGED, Submission, settle, submit_file
    from nessie_cli.workspace.batch import BatchFile

    branch = call.reference_name()
    text = message_of([message] if message is not None else None, None)
    with BatchFile(call.need_workspace()).changing() as file:
        batch, _ = settle(call, file)
        if batch is None:
            raise InvalidInput(NOTHING_STAGED)
        staged = _settled(call, batch, branch, decisions)
        file.write(Batch(batch.begun_at, staged) if staged else None)
        if text is not None and staged:
            print_committed(call, submit_file(call, file, Submission(branch, meta_of(call, text))), branch)
            return
    if call.wants_json:
        call.answer(batch_document(Batch(batch.begun_at, staged) if staged else None, branch))
    else:
        print_changes(call, staged)
        call.note("`nessie commit -m MSG` commits" if staged else "nothing is left to commit")


def _settled(call: Invocation, batch: Batch, branch: str, decisions: Decisions) -> StagedList:
    """The staged operations without conflicts, but for those that were skipped. Raises what is left where the decisions settle nothing more."""
    from nessie_cli.cli.batch_resolving import decided
    from nessie_cli.cli.submission import Submission, head_of_branch, submit
    from nessie_cli.model import CommitMeta
    from nessie_cli.workspace.staging import renames

    repository, staged = call.repository(), batch.staged
    done: set[ContentKey] = set()
    for _ in range(MOST_ROUNDS):
        head = head_of_branch(repository, branch)
        call.renames, call.staged_keys = renames(staged), [item.key for item in staged]
        try:
            if staged:
                submit(repository, type(batch)(batch.begun_at, staged), Submission(branch, CommitMeta(""), dry_run=True))
        except ReferenceConflict as error:
            found = {conflict.key: conflict for conflict in error.conflicts if conflict.key is not None}
            if found.keys() <= done:
                raise
            if not done:
                decisions.refuse_strangers(list(found.values()))
            complete = decisions.complete(call, error)
            for key in found.keys() & decisions.of.keys():
                staged = decided(repository, head, staged, found[key], decisions.of[key])
                done.add(key)
            if complete:
                continue
        else:
            if not done:
                decisions.refuse_strangers(())
        break
    return staged
