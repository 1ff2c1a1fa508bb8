"""The resolution of all conflicts of a merge or a batch."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nessie_cli.cli.merge.behaviors import with_id_of
from nessie_cli.cli.merge.decisions import Choice, Decision, Decisions
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
            _behavior(key, conflicts.get(key), decision)
            for key, decision in decisions.of.items()
            if key in conflicts or decision.content is None
        ]
        wanted = replace(options, behaviors=behaviors)
        try:
            do(replace(wanted, dry_run=True))
        except MergeConflict as error:
            conflicts |= {
                conflict.key: conflict for conflict in error.conflicts if conflict.key is not None
            }
            decided = {behavior.key for behavior in behaviors}
            if all(conflict.key in decided for conflict in error.conflicts):
                # The decisions do not resolve it. The report lists the resolutions.
                raise
            if not decide_all(app, error, decisions):
                raise
        else:
            break
    _refuse_unused_contents(decisions, conflicts)
    return do(wanted)


def _behavior(key: ContentKey, conflict: Conflict | None, decision: Decision) -> KeyBehavior:
    """Returns the behavior for a decision. A decision with a content needs a conflict."""
    if decision.content is None:
        ours = decision.choice is Choice.OURS
        return KeyBehavior(key, MergeBehavior.DROP if ours else MergeBehavior.FORCE)
    if conflict is None or conflict.actual is None:
        raise InvalidInput(
            f"{key}: the branch has no content with this key. Hint: decide by --ours or --theirs"
        )
    content = with_id_of(decision.content, conflict.actual, key)
    return KeyBehavior(key, MergeBehavior.NORMAL, conflict.actual, content)


def _refuse_unused_contents(decisions: Decisions, conflicts: Container[ContentKey]) -> None:
    """Raises `InvalidInput` for `--resolve` of a key that is not in conflict."""
    for key, decision in decisions.of.items():
        if decision.content is not None and key not in conflicts:
            raise InvalidInput(f"{key} is not in conflict")


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
