"""Validation of revisions on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import CommitNotFound
from nessie_cli.model import NO_ANCESTOR
from nessie_cli.revisions import Revision, RevisionStep, StepKind

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository


def check_reach(repository: Repository, spec: Revision) -> None:
    """Raises `CommitNotFound` if the steps of a revision exceed the history.

    The REST API stops at the empty history before the first commit, however large the step is. For
    users that would hide a mistake.
    """
    steps = spec.steps
    while steps and steps[-1].kind is StepKind.TIME:
        # A time before the first commit is not a mistake.
        steps = steps[:-1]
    last, spec = steps[-1] if steps else None, Revision(spec.name, spec.hash, steps)
    if last is None or _hash(repository, spec) != NO_ANCESTOR:
        return
    before = Revision(spec.name, spec.hash, steps[:-1])
    if last.kind is StepKind.PARENT and last.count > 1:
        if _hash(repository, before) != NO_ANCESTOR:
            count = len(repository.commit_at(before).meta.parents) or 1
            parents = "1 parent" if count == 1 else f"{count} parents"
            raise CommitNotFound(f"{spec}: the commit {before} has {parents}")
    elif last.count > 1:
        fewer = (*before.steps, RevisionStep(last.kind, last.count - 1))
        before = Revision(spec.name, spec.hash, fewer)
    if _hash(repository, before) == NO_ANCESTOR:
        raise CommitNotFound(f"{spec} is beyond the beginning of the history")


def _hash(repository: Repository, spec: Revision) -> str:
    return repository.resolve(spec).hash
