"""Plans for `commit_all`, written as calls of verbs."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import Change
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.repository.group_commit import Planned
from tests.repository.vocabulary import Catalog


def plan(call: Callable[[Catalog], Any]) -> Callable[[Repository], Planned[Any]]:
    """Returns the plan of a call that reads and drafts at most one verb."""
    submission: list[ChangeSubmission] = []

    def run(at: Repository) -> Planned[Any]:
        drafts = []

        def submit(change: Change, *, request_id: str | None = None, check: object = None) -> Any:
            if not submission:
                submission.append(ChangeSubmission(request_id))
            draft = at.draft(change, submission[0])
            drafts.append(draft)
            return draft.answer()

        drafting = copy(at)
        drafting.submit = submit  # type: ignore[method-assign]
        answer = call(Catalog(drafting))
        assert len(drafts) <= 1, "a plan makes one draft"
        return Planned(answer, drafts[0] if drafts else None)

    return run


def group(catalog: Catalog, *calls: Callable[[Catalog], Any]) -> list[Any]:
    """Plans calls and commits them together; returns the result or error of each."""
    return list(catalog.repository.commit_all([plan(call) for call in calls]))
