"""Large changes, which are drafted beside the writing thread.

Other writers wait for the writing thread. So it drafts small changes only, and other threads draft
large ones. It writes such a draft if the references of the draft have not moved since.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import partial
from typing import Any, TypeVar

from nessie_cli.errors import NotFound
from nessie_cli.repository.changes import Change, Commit
from nessie_cli.repository.draft import Draft, LargeMerge
from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.reached import (
    EARLY_DRAFTS,
    LongHistory,
    ReachedHistory,
)

A = TypeVar("A")
Plan = Callable[[StoreRepository], Planned[A]]

MOST_CHANGES = 500
"""The most changes of a merge that is drafted on the writing thread: they take about 50 ms."""


def plan_if_small(plan: Plan[A]) -> Plan[A | None]:
    """Returns a plan for the writing thread. Its answer is None if `plan` takes long.

    So it does for a merge of many changes, and if many commits become reachable.
    """

    def small(repository: StoreRepository) -> Planned[Any]:
        try:
            return plan(repository)
        except (LargeMerge, LongHistory):
            return Planned(None)

    return small


def draft_beside(
    repository: StoreRepository,
    plan: Plan[A],
    history: ReachedHistory,
    prefetch: tuple[str, str] | None,
) -> Planned[A]:
    """Runs a plan on this thread, without a limit of `history`. Raises the errors of the plan."""
    drafts: list[Planned[A]] = []

    def draft(state: StoreRepository) -> Planned[None]:
        drafts.append(plan(state))
        return Planned(None)

    first = [prefetch] if prefetch is not None else []
    with history.unlimited():
        [error] = repository.commit_all([draft], prefetch=first)
    if isinstance(error, Exception):
        raise error
    return drafts[0]


def plan_of_draft(
    drafted: Planned[A], is_seen: Callable[[Draft[Any], StoreRepository], bool]
) -> Plan[A | None]:
    """Returns a plan for the writing thread that writes a draft.

    Its answer is None if the draft is stale. `is_seen` returns whether the caller still sees its
    source.
    """
    drafts = [drafted]

    def plan(repository: StoreRepository) -> Planned[Any]:
        # Called a second time if the store has found the draft stale.
        planned = drafts.pop() if drafts else None
        if planned and planned.draft and _is_current(planned.draft, repository):
            return planned if is_seen(planned.draft, repository) else Planned(None)
        return Planned(None)

    return plan


def write_change(
    change: Change[A],
    write: Callable[[Plan[Any]], Any],
    plan: Callable[..., Planned[A]],
    draft: Callable[[], Planned[A]],
    is_seen: Callable[[Draft[Any], StoreRepository], bool],
) -> A:
    """Has the writing thread `write` a change, which may be large. Returns its answer.

    `plan` takes the repository and the most changes of a merge. A large change is drafted on this
    thread by `draft`, again if its branch has moved meanwhile, at last by the writing thread.
    """
    answer: A | None = None
    if not _has_many_operations(change):
        answer = write(plan_if_small(partial(plan, most_changes=MOST_CHANGES)))
    for _ in range(EARLY_DRAFTS):
        if answer is not None:
            return answer
        drafted = draft()
        if drafted.draft is None:
            return drafted.answer
        answer = write(plan_of_draft(drafted, is_seen))
    return write(plan) if answer is None else answer


def _has_many_operations(change: Change[Any]) -> bool:
    """Returns whether a change is a commit that takes long, such as a revert of many keys."""
    return (
        isinstance(change, Commit)
        and isinstance(change.operations, Sized)
        and len(change.operations) > MOST_CHANGES
    )


def _is_current(draft: Draft[Any], repository: StoreRepository) -> bool:
    """Returns whether the references of a draft have not moved. The store compares the rest."""
    return all(_head(repository, each.name) == each.before for each in draft.references)


def _head(repository: StoreRepository, name: str) -> str | None:
    try:
        return repository.reference(name).hash
    except NotFound:
        return None
