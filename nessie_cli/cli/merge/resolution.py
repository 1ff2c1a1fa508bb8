"""The resolution of all conflicts of a merge or a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.behaviors import with_id_of
from nessie_cli.cli.merge.decisions import Choice, Decision, Decisions, Question, question_of
from nessie_cli.cli.merge.names import ContentName
from nessie_cli.cli.merge.patterns import MOST_ROUNDS, ConflictId, SidePattern, deciding, id_of
from nessie_cli.cli.merge.prompts import ask_all, decide_all
from nessie_cli.cli.merge.sides import OF_MERGE, Sides, is_renamed_twice, why_no_value
from nessie_cli.cli.merge.staged import BatchResolution, Decided, Resolved
from nessie_cli.cli.merge.staged_tables import StagedTables
from nessie_cli.cli.staging.resolutions import OF_NAMESPACES
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.inspection.text import visible
from nessie_cli.model import (
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    KeyBehavior,
    MergeBehavior,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.workspace.batch import StagedBatch
from nessie_cli.workspace.content_edits import ContentEdit
from nessie_cli.workspace.staging import StagedList

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

T = TypeVar("T")
A = TypeVar("A")


def resolve_merge(
    app: Invocation,
    do: Callable[[MergeOptions], T],
    options: MergeOptions,
    contents: Mapping[ContentKey, Content],
    sides: Sides = OF_MERGE,
    *,
    patterns: Sequence[SidePattern] = (),
) -> T:
    """Resolves the conflicts of a merge, transplant or revert by dry runs, then performs it.

    `options` contain the decisions for a side, `contents` are those of `--resolve`, by key, and
    `patterns` those of globs. Raises `ReferenceConflict` with the conflicts that were skipped, or
    that no decision resolves.
    """
    answers: dict[ConflictId, KeyBehavior] = {}
    asked: Sequence[ConflictId] = ()

    def attempt(left_out: ConflictId | None = None) -> None:
        given = [each for identity, each in answers.items() if identity != left_out]
        trial = replace(options, behaviors=[*options.behaviors, *given], dry_run=True)
        deciding(do, trial, patterns)

    for _ in range(MOST_ROUNDS):
        try:
            attempt()
        except ReferenceConflict as error:
            # The answers are about this state of the branch.
            options = replace(options, expected_hash=options.expected_hash or error.head)
            asked = _answer(app, error, answers, options, contents, sides=sides)
            if error.left:
                raise
        except InvalidInput as error:
            asked = [identity for identity in asked if identity in answers]
            if not asked:
                raise
            _say_again(app, error.message)
            # An answer can contradict an earlier one, and then both are asked again.
            given = [identity for identity in answers if identity[2] not in contents]
            for identity in _contradicting(given, attempt, latest=asked):
                del answers[identity]
        else:
            break
    unused = contents.keys() - {key for _, _, key in answers}
    if unused:
        raise InvalidInput(f"{min(unused)} is not in conflict")
    behaviors = [*options.behaviors, *answers.values()]
    return deciding(do, replace(options, behaviors=behaviors), patterns)


def _answer(
    app: Invocation,
    error: ReferenceConflict,
    answers: dict[ConflictId, KeyBehavior],
    options: MergeOptions,
    contents: Mapping[ContentKey, Content],
    *,
    sides: Sides,
) -> Sequence[ConflictId]:
    """Adds an answer for each conflict of an error, except those that the user skipped.

    Returns the conflicts that the user was asked about. Raises the error if an option decided a
    conflict, but does not resolve it. The report then lists the resolutions.
    """
    conflicts = [conflict for conflict in error.conflicts if conflict.key is not None]
    named = {behavior.key for behavior in options.behaviors}
    again = [conflict for conflict in conflicts if id_of(conflict) in answers]
    if (
        not conflicts
        or any(c.key in named for c in conflicts)
        or contents.keys() & {each.key for each in again}
    ):
        raise error
    for conflict in again:
        del answers[id_of(conflict)]
        _say_again(app, f"{conflict.key} is still in conflict")
    for conflict in conflicts:
        if conflict.key in contents:
            answers[id_of(conflict)] = _resolved_by(conflict, contents[conflict.key], sides)
    asked = [conflict for conflict in conflicts if id_of(conflict) not in answers]
    for conflict, decision in zip(asked, ask_all(app, error, asked, sides), strict=True):
        if decision.choice is not Choice.SKIP:
            answers[id_of(conflict)] = _behavior(conflict, decision, sides)
    return list(map(id_of, asked))


def _behavior(conflict: Conflict, decision: Decision, sides: Sides) -> KeyBehavior:
    """Returns the behavior for a decision about a conflict."""
    assert conflict.key is not None
    if decision.content is not None:
        return _resolved_by(conflict, decision.content, sides)
    ours = decision.choice is Choice.OURS
    behavior = MergeBehavior.DROP if ours else MergeBehavior.FORCE
    return KeyBehavior(
        conflict.key, behavior, content_id=conflict.content_id, commit=conflict.commit
    )


def _resolved_by(conflict: Conflict, content: Content, sides: Sides) -> KeyBehavior:
    """Returns the behavior that resolves a conflict by a new value, if it takes one."""
    assert conflict.key is not None
    if conflict.actual is None or not sides.takes_new_value(conflict):
        reason, option = why_no_value(conflict), ContentName.of(conflict)
        hint = "decide by --ours or --theirs"
        if is_renamed_twice(conflict):
            hint = f"--ours {option} or --theirs {option} beside --resolve says which key it has"
        raise InvalidInput(
            f"{conflict.key} cannot be resolved by a new value alone: {reason}", hint=hint
        )
    content = with_id_of(content, conflict.actual, conflict.key)
    return KeyBehavior(
        conflict.key,
        MergeBehavior.NORMAL,
        conflict.actual,
        content,
        conflict.content_id,
        conflict.commit,
    )


def resolve_batch(
    app: Invocation,
    batch: StagedBatch,
    branch: str,
    check: Callable[[StagedBatch], object],
    decisions: Decisions,
    *,
    tables: StagedTables | None,
) -> tuple[StagedList, ReferenceConflict | None]:
    """Returns the staged operations with all conflicts resolved, except those that were skipped.

    The error contains the conflicts that were skipped, if there are any. `check` raises
    `ReferenceConflict` with the conflicts of operations, and `tables` combines those tables that no
    option decides about. Raises the same error if no decision resolves them, and `InvalidInput` if
    a staged change cannot be kept.
    """
    repository, staged = app.repository(), batch.staged
    done: set[Question] = set()
    shown: set[Question] = set()
    for number in range(MOST_ROUNDS):
        head = head_of_branch(repository, branch)
        try:
            if staged:
                check(StagedBatch(batch.begun_at, staged))
        except ReferenceConflict as error:
            if set(map(question_of, error.conflicts)) <= done:
                raise
            if number == 0:
                decisions.refuse_other_keys(error.conflicts)
                shown = set(map(question_of, error.conflicts))
            _refuse_deletions(error, decisions, shown, carried(app.options))
            # A table that the branch changes meanwhile is combined again.
            combined = tables.combine(error, decisions) if tables is not None else set()
            conflicts = _decided_first(error.conflicts)
            resolution = BatchResolution(
                repository, branch, head, batch.begun_at, carried(app.options)
            )
            apply = partial(resolution.resolved, staged, error=error)
            decided, (staged, dropped) = _answered(app, error, conflicts, decisions, apply)
            for edit in dropped:
                app.output.note(_dropped(edit))
            done |= {question_of(each) for key, (each, _) in decided.items() if key not in combined}
            if error.left:
                return staged, error
        else:
            if number == 0:
                decisions.refuse_other_keys(())
            break
    return staged, None


def _answered(
    app: Invocation,
    error: ReferenceConflict,
    conflicts: Sequence[Conflict],
    decisions: Decisions,
    apply: Callable[[Decided], Resolved],
) -> tuple[Decided, Resolved]:
    """Asks about the undecided ones of an error's `conflicts`, and applies all decisions.

    Asks again for answers that contradict each other. Raises `InvalidInput` if options do.
    """
    while True:
        asked = [each for each in conflicts if decisions.about(each) is None]
        decide_all(app, error, conflicts, decisions)
        decided = _decided(conflicts, decisions)
        try:
            return decided, apply(decided)
        except InvalidInput as refusal:
            asked = [each for each in asked if each.key in decided]
            if not asked:
                raise
            _say_again(app, refusal.message)
            without = partial(_without_answer, apply, decided)
            for each in _contradicting(asked, without, latest=asked):
                del decisions.answers[question_of(each)]


def _contradicting(
    answers: Sequence[A], attempt: Callable[[A], object], *, latest: Sequence[A]
) -> Sequence[A]:
    """Returns the answers that are asked again, because they contradict others.

    Those are the ones without which `attempt` succeeds; if there are none, all of the latest.
    """
    contradicting = []
    for each in answers:
        with suppress(InvalidInput):
            with suppress(ReferenceConflict):
                attempt(each)
            contradicting.append(each)
    return contradicting or latest


def _without_answer(
    apply: Callable[[Decided], Resolved], decided: Decided, answered: Conflict
) -> None:
    """Applies decisions without one of them. Raises `InvalidInput` if they contradict."""
    apply({key: each for key, each in decided.items() if key != answered.key})


def _say_again(app: Invocation, reason: str) -> None:
    app.output.err.print_text(visible(f"{reason}; please answer again"))


def _decided(
    conflicts: Sequence[Conflict], decisions: Decisions
) -> dict[ContentKey, tuple[Conflict, Decision]]:
    """Returns the conflicts that are decided, by key, with their decisions."""
    return {
        conflict.key: (conflict, decision)
        for conflict in conflicts
        if conflict.key is not None and (decision := decisions.about(conflict)) is not None
    }


def _decided_first(conflicts: Sequence[Conflict]) -> Sequence[Conflict]:
    """Returns the conflicts of contents; without any, those of namespaces.

    Which namespaces the batch needs depends on the decisions about its contents.
    """
    contents = [conflict for conflict in conflicts if conflict.type not in OF_NAMESPACES]
    return contents or conflicts


def _refuse_deletions(
    error: ReferenceConflict,
    decisions: Decisions,
    shown: Collection[Question],
    options: Sequence[str],
) -> None:
    """Raises `InvalidInput` if an option about a key deletes contents that it does not name.

    That is a staged deletion of a namespace with contents, and a namespace in the place of another
    content, unless this is all that the conflicts in `shown` ask about the key.
    """
    for conflict in error.conflicts:
        decision = decisions.of.get(conflict.key) if conflict.key else None
        if decision is None or decision.choice is not Choice.THEIRS:
            continue
        option = f"--{decisions.sides.theirs} {conflict.key}"
        if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
            lines = [resolution.command for resolution in error.ways_out.of(conflict)]
            commands = ", or ".join(f"`{line}`" for line in lines)
            raise InvalidInput(
                f"{option} would delete contents that it does not name: {conflict.message}",
                hint=f"{commands}",
            )
        is_shown = question_of(conflict) in shown and (conflict.key, False) not in shown
        if (
            conflict.type is ConflictType.NOT_A_NAMESPACE
            and not is_shown
            and question_of(conflict) not in decisions.answers
        ):
            raise InvalidInput(
                f"{option} would replace another content by a namespace: the present"
                f" {conflict.key} is not a namespace, and a staged change below it is kept",
                hint=f"`{command_line(*options, 'resolve')}` on a terminal asks about both; or"
                f" rename the present {conflict.key} on the branch first",
            )


def _dropped(edit: ContentEdit) -> str:
    """Returns a remark about a change that a decision about another key drops."""
    if edit.is_rename:
        description = f"rename of {edit.old} to {edit.new}"
    elif edit.old is None:
        description = f"creation of {edit.new}"
    else:
        description = f"change of {edit.old}" if edit.new else f"deletion of {edit.old}"
    return f"the staged {description} is dropped"
