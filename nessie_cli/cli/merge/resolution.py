"""The resolution of all conflicts of a merge or a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nessie_cli.cli.merge.decisions import Choice, Decisions
from nessie_cli.cli.merge.prompts import decide_all
from nessie_cli.cli.merge.staged import resolved
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict
from nessie_cli.model import Conflict, ContentKey, KeyBehavior, MergeBehavior, MergeResult
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.workspace.staging import StagedList

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

MOST_ROUNDS = 20
"""The maximum number of rounds. Resolving a conflict may cause another one."""


def resolve_merge(
    app: Invocation,
    do: Callable[[MergeOptions], MergeResult],
    options: MergeOptions,
    decisions: Decisions,
) -> MergeResult:
    """Resolves the conflicts of a merge or transplant by dry runs, then performs it.

    Raises `MergeConflict` with the conflicts that were skipped, or that no decision resolves.
    """
    conflicts: dict[ContentKey, Conflict] = {}
    for _ in range(MOST_ROUNDS):
        behaviors = [
            _behavior(conflicts[key], decisions) for key in decisions.of if key in conflicts
        ]
        wanted = replace(options, behaviors=behaviors)
        try:
            do(replace(wanted, dry_run=True))
        except MergeConflict as error:
            conflicts |= {
                conflict.key: conflict for conflict in error.conflicts if conflict.key is not None
            }
            if behaviors and all(conflict.key in decisions.of for conflict in error.conflicts):
                # The decisions do not resolve it. The report lists the resolutions.
                raise
            decisions.refuse_other_keys(list(conflicts.values()))
            if not decide_all(app, error, decisions):
                raise
        else:
            decisions.refuse_other_keys(list(conflicts.values()))
            break
    return do(wanted)


def _behavior(conflict: Conflict, decisions: Decisions) -> KeyBehavior:
    assert conflict.key is not None
    decision = decisions.of[conflict.key]
    if decision.content is not None:
        if conflict.actual is None:
            raise InvalidInput(
                f"{conflict.key}: the branch has no content with this key. Hint: decide by --ours"
                " or --theirs"
            )
        return KeyBehavior(
            conflict.key,
            MergeBehavior.NORMAL,
            conflict.actual,
            decision.content.with_id(conflict.actual.id),
        )
    return KeyBehavior(
        conflict.key, MergeBehavior.DROP if decision.choice is Choice.OURS else MergeBehavior.FORCE
    )


def resolve_batch(
    app: Invocation,
    staged: StagedList,
    branch: str,
    check: Callable[[StagedList], object],
    decisions: Decisions,
) -> tuple[StagedList, ReferenceConflict | None]:
    """Returns the staged operations with all conflicts resolved, except those that were skipped.

    The error contains the conflicts that were skipped, if there are any. `check` raises
    `ReferenceConflict` with the conflicts of operations. Raises the same error if no decision
    resolves them.
    """
    repository = app.repository()
    done: set[ContentKey] = set()
    for _ in range(MOST_ROUNDS):
        head = head_of_branch(repository, branch)
        try:
            if staged:
                check(staged)
        except ReferenceConflict as error:
            found = {
                conflict.key: conflict for conflict in error.conflicts if conflict.key is not None
            }
            if found.keys() <= done:
                raise
            if not done:
                decisions.refuse_other_keys(list(found.values()))
            is_complete = decide_all(app, error, decisions)
            for key in found.keys() & decisions.of.keys():
                staged = resolved(repository, head, staged, found[key], decisions.of[key])
                done.add(key)
            if not is_complete:
                return staged, error
        else:
            if not done:
                decisions.refuse_other_keys(())
            break
    return staged, None
