"""The publication of a run: one merge of the commit that the checks saw.

If the target has changed a content of the run meanwhile, this merge is a conflict. Then the target
is merged into the branch of the run, where tables combine, and the checks see the result.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from nessie_cli.errors import NessieError, ReferenceConflict, ReferenceMoved
from nessie_cli.model import NO_ANCESTOR, CommitMeta, MergeResult
from nessie_cli.model.runs import PROPERTY, CheckResult, PipelineRun, RunStage
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.revisions import Revision
from nessie_cli.runs.lifecycle import ActiveRun

MOST_MERGES = 3
"""How often the target is merged into the branch of a run and checked again."""

_PAUSE = 0.2
"""Seconds of the longest pause after a merge of tables that others have changed again."""

Checks = Callable[[str, str], Sequence[CheckResult]]
"""Runs the checks on a commit, which has been merged with a commit of the target."""
Combine = Callable[[Callable[[MergeOptions], MergeResult], MergeOptions, str], MergeResult]
"""Performs a merge, and combines the tables in conflict. The text describes the merge."""


class ChecksFailed(NessieError):
    """A check of a run has failed."""

    code = "CHECK_FAILED"

    def __init__(self, results: Sequence[CheckResult]) -> None:
        self.results = tuple(results)
        failed = [result.check for result in results if not result.passed]
        super().__init__(
            f"check failed: {failed[0]}" if len(failed) == 1 else f"{len(failed)} checks failed"
        )


def publish(active: ActiveRun, combine: Combine, checks: Checks | None, meta: CommitMeta) -> str:
    """Publishes the head that the checks saw, and returns the commit of the target.

    Without `checks`, a conflict is combined in the publication itself. Raises `ReferenceConflict`
    for what does not combine, `ChecksFailed`, and `ReferenceMoved` if the target changes contents
    of the run again and again. Each call continues what an earlier one has begun.
    """
    repository, run = active.repository, active.run
    if run.head == run.base:
        commit = repository.reference(run.target).hash
        active.published(commit)
        return commit
    for merges in range(MOST_MERGES + 1):
        head = active.run.head
        request_id = active.publication_id(head)

        def merge(options: MergeOptions, head: str = head, id_: str = request_id) -> MergeResult:
            return repository.merge(run.target, Revision(None, head), options, request_id=id_)

        options, target = _options(run, meta), repository.reference(run.target).hash
        try:
            result = merge(options) if checks else combine(merge, options, f"run {run.id}")
        except ReferenceMoved:
            raise
        except ReferenceConflict:
            if checks is None:
                if merges == MOST_MERGES or repository.reference(run.target).hash == target:
                    raise
                # Other runs were faster each time that this one had combined its tables.
                time.sleep(random.uniform(0, merges + 1) * _PAUSE)  # noqa: S311 - only a pause
                continue
            if merges == MOST_MERGES:
                raise _moved(active) from None
            _merge_target(active, combine)
            check(active, checks)
        else:
            commit = result.resultant_hash or repository.reference(run.target).hash
            active.published(commit)
            return commit
    raise AssertionError


def finish_publication(active: ActiveRun) -> str:
    """Completes the publication by a process that was killed after its merge.

    Returns the commit of the target, or "" if there was no merge.
    """
    commit = active.published_commit()
    if commit:
        active.published(commit)
    return commit


def check(active: ActiveRun, checks: Checks) -> None:
    """Runs the checks on the head of the branch, and records the results.

    They compare it with the commit of the target that it has last. Raises `ChecksFailed`.
    """
    head = active.head()
    against = active.repository.merge_base(Revision(None, head), Revision(active.run.target))
    active.change(stage=RunStage.CHECK, head=head, against=against)
    results = checks(head, against)
    active.change(results=tuple(results))
    if not all(result.passed for result in results):
        raise ChecksFailed(results)


def _merge_target(active: ActiveRun, combine: Combine) -> None:
    """Merges the target into the branch of the run."""
    repository, run = active.repository, active.run
    target = repository.reference(run.target).hash
    source = Revision(None, target)
    meta = CommitMeta(
        f"Merge branch '{run.target}' into {run.branch}", properties={PROPERTY: (run.id,)}
    )
    combine(
        lambda options: repository.merge(run.branch, source, options),
        _options(run, meta),
        f"merge of {target} into {run.branch}",
    )


def _options(run: PipelineRun, meta: CommitMeta) -> MergeOptions:
    """Returns the options of a merge; a run that began without any commit shares no history."""
    return MergeOptions(meta=meta, unrelated=run.base == NO_ANCESTOR)


def _moved(active: ActiveRun) -> ReferenceMoved:
    run = active.run
    return ReferenceMoved(
        f"'{run.target}' has changed contents of run {run.id} again and again:"
        f" {MOST_MERGES} times, each merged and checked",
        (),
        reference=run.target,
        head=None,
        expected_hash=run.against,
    )
