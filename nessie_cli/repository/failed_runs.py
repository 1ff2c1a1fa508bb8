"""The guard against commits of runs that have failed.

Their tables are incomplete or were not checked. A merge is judged by its commits, not by the name
of its source, so a branch that begins with such a commit is refused, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError, NotFound, ReferenceNotFound, WriteRefused
from nessie_cli.model.runs import PipelineRun, RunStage, RunState
from nessie_cli.repository.changes import Merge, Transplant
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.runs import RunRecords
from nessie_cli.revisions import Revision

REFUSED = "refuse-failed-runs"
"""The setting of the repository that applies the guard to clients of plain REST, too."""


def refuse_failed_run(
    draft: Draft[Any],
    repository: ReadableRepository,
    runs: RunRecords,
    settings: Callable[[], Mapping[str, str]],
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a draft brings commits of a failed run.

    Cost: one read of the records; if there are failed runs, O(commits since the merge base and
    commits of these runs).
    """
    change = draft.change
    if not isinstance(change, Merge | Transplant) or draft.repeated or not draft.references:
        return None
    options = change.options
    if options.allow_failed_run:
        return None
    failed = [
        record.run
        for record in runs.all(RunState.FAILED, RunState.DISCARDED, RunState.RUNNING)
        if record.run.state is not RunState.RUNNING or record.run.stage is RunStage.COMMAND
    ]
    if not failed or (options.per_key and settings().get(REFUSED) != "true"):
        return None
    brought = (
        set(change.commits) if isinstance(change, Transplant) else _of_source(draft, repository)
    )
    for run in failed:
        if not brought.isdisjoint(_commits(run, repository)):
            return partial(
                WriteRefused,
                f"the source has commits of run {run.id}, which was never published ({_why(run)})",
                hint=f"`nessie run --show {run.id}` shows it; --allow-failed-run merges it anyway",
            )
    return None


def _why(run: PipelineRun) -> str:
    if run.state is RunState.RUNNING:
        return "its command runs, or was killed"
    return f"{run.state}: {run.reason or run.stage}"


def _of_source(draft: Draft[Any], repository: ReadableRepository) -> set[str]:
    """Returns the commits that a merge makes reachable from its target."""
    target = draft.references[0].before
    assert target is not None
    return {
        entry.hash
        for source in draft.sources
        for entry in repository.log_excluding(Revision(None, source), [Revision(None, target)])
    }


def _commits(run: PipelineRun, repository: ReadableRepository) -> Iterator[str]:
    """Yields the commits that only a run made, if they are still there.

    Those that it has merged from its target are not its own. At a server, those of another
    committer are not, either: a caller who writes a record decides about own commits only.
    """
    exclude = [run.base, run.against, _head(repository, run.target)]
    try:
        # A run that was killed during its command has recorded no commit.
        head = run.head or repository.reference(run.branch).hash
        for entry in repository.log_excluding(
            Revision(None, head), [Revision(None, hash_) for hash_ in exclude if hash_]
        ):
            if not run.is_remote or entry.meta.committer == run.who:
                yield entry.hash
    except (NotFound, InvalidInput):
        return


def _head(repository: ReadableRepository, branch: str) -> str:
    with suppress(ReferenceNotFound):
        return repository.reference(branch).hash
    return ""


def is_guarding(repository: ReadableRepository, run: PipelineRun) -> bool:
    """Returns whether a branch or tag, other than that of the run, has commits of a failed run.

    Not if its target has them: then someone has merged them nevertheless. Cost: O(commits of the
    run), and one test for each reference.
    """
    if run.state is RunState.PUBLISHED:
        return False
    commits = list(_commits(run, repository)) if run.head else []
    if not commits:
        return False
    heads = {
        reference.name: reference.hash
        for reference in repository.references()
        if reference.name != run.branch
    }
    descendants = repository.descendants_among(set(heads.values()), commits[-1])
    return bool(descendants) and heads.get(run.target) not in descendants
