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
from nessie_cli.runs.checks import fitted
from nessie_cli.runs.lifecycle import ActiveRun

MOST_MERGES = 3
"""How often the target is merged into the branch of a run and checked again."""
MOST_UNCHECKED_MERGES = 20
"""How often it is merged without checks, which takes a moment only."""

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

    Without `checks`, a merged state is published unchecked. Raises `ReferenceConflict` for what
    does not combine, `ChecksFailed`, and `ReferenceMoved` if the target changes contents of the run
    again and again. Each call continues what an earlier one has begun.
    """
    repository, run = active.repository, active.run
    if run.head == run.base:
        commit = repository.reference(run.target).hash
        active.published(commit)
        return commit
    most = MOST_UNCHECKED_MERGES if checks is None else MOST_MERGES
    for merges in range(most + 1):
        head = active.run.head
        # From now on the run cannot be discarded, or it has been, which raises.
        active.change(stage=RunStage.PUBLISH)
        try:
            result = repository.merge(
                run.target,
                Revision(None, head),
                _options(run, meta),
                request_id=active.publication_id(head),
            )
        except ReferenceMoved:
            raise
        except ReferenceConflict:
            if merges == most:
                raise _moved(active, most) from None
            # Other runs may be faster each time.
            time.sleep(random.uniform(0, merges) * _PAUSE)  # noqa: S311 - only a pause
            _merge_target(active, combine)
            check(active, checks or _no_checks)
        else:
            commit = result.resultant_hash or repository.reference(run.target).hash
            active.published(commit)
            return commit
    raise AssertionError


def _no_checks(head: str, against: str) -> Sequence[CheckResult]:  # noqa: ARG001 - a `Checks`
    return ()


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
    if results:
        active.change(results=fitted(results))
    if not all(result.passed for result in results):
        raise ChecksFailed(results)


def _merge_target(active: ActiveRun, combine: Combine) -> None:
    """Merges the target into the branch of the run. A conflict names the commit of the target."""
    repository, run = active.repository, active.run
    target = repository.reference(run.target).hash
    source = Revision(None, target)
    meta = CommitMeta(
        f"Merge branch '{run.target}' into {run.branch}", properties={PROPERTY: (run.id,)}
    )
    try:
        combine(
            lambda options: repository.merge(run.branch, source, options),
            _options(run, meta),
            f"merge of {target} into {run.branch}",
        )
    except ReferenceConflict as error:
        error.source_hash = target
        raise


def _options(run: PipelineRun, meta: CommitMeta) -> MergeOptions:
    """Returns the options of a merge; a run that began without any commit shares no history."""
    return MergeOptions(meta=meta, unrelated=run.base == NO_ANCESTOR)


def _moved(active: ActiveRun, most: int) -> ReferenceMoved:
    run = active.run
    return ReferenceMoved(
        f"'{run.target}' has changed contents of run {run.id} again and again:"
        f" {most} times, each merged into its branch",
        (),
        reference=run.target,
        head=None,
        expected_hash=run.against,
    )
