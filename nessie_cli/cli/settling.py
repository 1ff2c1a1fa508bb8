"""Settling conflicts until nothing is left of them: of a merge or transplant by what becomes of each key, of a batch by what is staged for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from nessie_cli.cli.batch_resolving import decided
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.merging import show_result
from nessie_cli.cli.resolving import Choice, Decisions
from nessie_cli.cli.submission import Submission, head_of_branch, submit
from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict
from nessie_cli.model import CommitMeta, Conflict, ContentKey, KeyBehavior, MergeBehavior, MergeResult
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.workspace.batch import Batch
from nessie_cli.workspace.staging import StagedList

MOST_ROUNDS = 20
"""Settling one conflict may bring up another; after so many rounds something is odd."""


class Work(NamedTuple):
    """A merge or a transplant: what does it with these options, and what it is called afterwards."""

    do: Callable[[MergeOptions], MergeResult]
    verb: str
    source: str


def settle_merge(call: Invocation, work: Work, options: MergeOptions, decisions: Decisions) -> None:
    """Try, ask about what is in conflict, try again; then do it. Raises the conflicts that were skipped, or that no decision settles."""
    conflicts: dict[ContentKey, Conflict] = {}
    for _ in range(MOST_ROUNDS):
        behaviors = [_behavior(conflicts[key], decisions) for key in decisions.of if key in conflicts]
        try:
            work.do(structs.replace(options, behaviors=behaviors, dry_run=True))
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
            show_result(call, work.do(structs.replace(options, behaviors=behaviors)), work.verb, work.source)
            return


def _behavior(conflict: Conflict, decisions: Decisions) -> KeyBehavior:
    assert conflict.key is not None
    decision = decisions.of[conflict.key]
    if decision.content is not None:
        if conflict.actual is None:
            raise InvalidInput(f"{conflict.key}: the branch has no such content; decide by --ours or --theirs")
        return KeyBehavior(conflict.key, MergeBehavior.NORMAL, conflict.actual, decision.content.with_id(conflict.actual.id))
    return KeyBehavior(conflict.key, MergeBehavior.DROP if decision.choice is Choice.OURS else MergeBehavior.FORCE)


def settle_batch(call: Invocation, batch: Batch, branch: str, decisions: Decisions) -> StagedList:
    """The staged operations without conflicts, but for those that were skipped. Raises what is left where the decisions settle nothing more."""
    repository, staged = call.repository(), batch.staged
    done: set[ContentKey] = set()
    for _ in range(MOST_ROUNDS):
        head = head_of_branch(repository, branch)
        try:
            if staged:
                submit(call, type(batch)(batch.begun_at, staged), Submission(branch, CommitMeta(""), dry_run=True))
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
