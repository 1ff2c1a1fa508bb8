"""The guard against commits of runs that have failed.

Their tables are incomplete or were not checked. A change is judged by the commits of its source,
not by the name, so a branch that begins with such a commit is refused, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NessieError, NotFound, ReferenceNotFound, WriteRefused
from nessie_cli.model import LogEntry
from nessie_cli.model.runs import UNPUBLISHED, PipelineRun, RunStage, RunState
from nessie_cli.repository.changes import AssignReference, Merge, Transplant
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.runs import RunRecord
from nessie_cli.revisions import Revision

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository

REFUSED = "refuse-failed-runs"
"""The setting of the repository that applies the guard to clients of plain REST, too."""
MOST_SECONDS = 1.0
"""How long the commits of a caller are compared with failed runs of this caller."""


def refuse_failed_run(
    draft: Draft[Any],
    repository: ReadableRepository,
    unpublished: Iterable[RunRecord],
    settings: Callable[[], Mapping[str, str]],
    who: str,
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a draft brings commits of a failed run.

    `unpublished` are the records of runs in these states. At a server, the error has the text of
    the record only if it is a run of the caller `who`. Cost: if there are failed runs, O(commits
    since the merge base and commits of these runs). At a server, runs of other callers than the
    committers cost nothing.
    """
    change = draft.change
    if not isinstance(change, _BRINGING) or draft.repeated or not draft.references:
        return None
    if _allows(change):
        return None
    failed = _failed(unpublished)
    if not failed or (_is_plain(change) and settings().get(REFUSED) != "true"):
        return None
    if isinstance(change, AssignReference):
        # The branch of a run may move to its own commits.
        failed = [run for run in failed if run.branch != draft.references[0].name]
    brought = (
        [repository.commit_at(Revision(None, each), operations=False) for each in change.commits]
        if isinstance(change, Transplant)
        else _of_source(draft, repository)
    )
    return _refusal_of(failed, brought, repository, who)


def refuse_restoring(repository: Repository, source: str, head: str) -> None:
    """Raises `WriteRefused` if contents at `source` come from a failed run.

    `head` is that of the branch on which they are restored. A server knows no source of a restored
    content, so the client asks for its own runs. Cost: one read of the records, and that of
    `refuse_failed_run`.
    """
    commits = list(_since(repository, source, head))
    if not commits:
        return
    try:
        failed = _failed(repository.runs.all(*UNPUBLISHED))
    except InvalidInput:
        # The server of other vendors has no runs.
        return
    if refusal := _refusal_of(failed, commits, repository):
        raise refusal()


_BRINGING = (Merge, Transplant, AssignReference)


def _allows(change: Merge | Transplant | AssignReference) -> bool:
    if isinstance(change, AssignReference):
        return change.allow_failed_run is True
    return change.options.allow_failed_run


def _is_plain(change: Merge | Transplant | AssignReference) -> bool:
    """Returns whether a change has the rules of the original server."""
    if isinstance(change, AssignReference):
        return change.allow_failed_run is None
    return change.options.per_key


def _failed(unpublished: Iterable[RunRecord]) -> list[PipelineRun]:
    """Returns the runs that failed, or whose command or checks run or were killed.

    They have no texts but the reason, cut: a caller of a server may have 64 MB of them.
    """
    return [
        replace(record.run, reason=record.run.reason[:_MOST_REASON], **_WITHOUT_TEXTS)
        for record in unpublished
        if record.run.state is not RunState.RUNNING or record.run.stage in _UNCHECKED
    ]


_MOST_REASON = 1_000
_WITHOUT_TEXTS: Mapping[str, Any] = {
    **dict.fromkeys(("command", "checks", "results", "tokens", "roles"), ()),
    **dict.fromkeys(("key", "code", "host", "tag"), ""),
    "credentials": {},
}
_UNCHECKED = (RunStage.COMMAND, RunStage.CHECK)


def _refusal_of(
    failed: Iterable[PipelineRun],
    brought: Iterable[LogEntry],
    repository: ReadableRepository,
    who: str | None = None,
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a run made one of these commits.

    The caller is `who`; None for a client, which knows its own runs only.

    The record of a caller of a server costs only those who bring commits of this caller, and they
    wait for a limited time: it can name any commits, so its walk can be the whole history.
    """
    every: dict[str, LogEntry] = {entry.hash: entry for entry in brought}
    by_committer: dict[str | None, set[str]] = {}
    for hash_, entry in every.items():
        by_committer.setdefault(entry.meta.committer, set()).add(hash_)
    # A run that has any of these commits has one of those that come before all others.
    first = [hash_ for hash_, entry in every.items() if every.keys().isdisjoint(entry.meta.parents)]
    until = time.monotonic() + MOST_SECONDS
    for run in failed:
        commits = by_committer.get(run.who, ()) if run.is_remote else every
        if not commits:
            continue
        if run.is_remote and time.monotonic() > until:
            return _too_slow
        if not _has_any(run, first, repository):
            continue
        try:
            if any(commit in commits for commit in _commits(run, repository, until)):
                is_own = who is None or run.who == who or not run.is_remote
                return partial(_refusal, run) if is_own else partial(_refusal_of_other, run)
        except TimeoutError:
            return _too_slow
    return None


def _has_any(run: PipelineRun, commits: Iterable[str], repository: ReadableRepository) -> bool:
    """Returns whether the history of a run has any of these commits. Cost: ancestor tests."""
    try:
        head = Revision(None, run.head or repository.reference(run.branch).hash)
        return any(repository.is_ancestor(Revision(None, commit), head) for commit in commits)
    except (NotFound, InvalidInput):
        return False


def _too_slow() -> WriteRefused:
    return WriteRefused(
        "comparing the source with your failed runs takes too long",
        hint="`nessie run --list` lists them; --allow-failed-run merges without the comparison",
    )


def _refusal(run: PipelineRun) -> WriteRefused:
    return WriteRefused(
        f"the source has commits of run {run.id}, which was never published ({_why(run)})",
        hint=f"`nessie run --show {run.id}` shows it; --allow-failed-run allows them anyway",
    )


def _refusal_of_other(run: PipelineRun) -> WriteRefused:
    return WriteRefused(
        f"the source has commits of run {run.id} of {run.who}, which was never published",
        hint="--allow-failed-run allows them anyway",
    )


def _why(run: PipelineRun) -> str:
    if run.state is RunState.RUNNING:
        return (
            "its command runs, or was killed"
            if run.stage is RunStage.COMMAND
            else "its checks run, or were killed"
        )
    return f"{run.state}: {run.reason or run.stage}"


def _of_source(draft: Draft[Any], repository: ReadableRepository) -> Iterator[LogEntry]:
    """Yields the commits that a change makes reachable from its target."""
    target = draft.references[0].before
    assert target is not None
    for source in draft.sources:
        yield from _since(repository, source, target)


def _since(repository: ReadableRepository, source: str, head: str) -> Iterator[LogEntry]:
    return repository.log_excluding(Revision(None, source), [Revision(None, head)])


def _commits(run: PipelineRun, repository: ReadableRepository, until: float) -> Iterator[str]:
    """Yields the commits that only a run made, if they are still there.

    Raises `TimeoutError` if the record of a caller of a server needs more time than `until`.

    Those that it has merged from its target are not its own. At a server, those of another
    committer are not, either: a caller who writes a record decides about own commits only.
    """
    exclude = [run.base, run.against, _head(repository, run.target)]
    try:
        # A run that was killed during its command has recorded no commit.
        head = run.head or repository.reference(run.branch).hash
        for entry in repository.log_excluding(
            Revision(None, head),
            [Revision(None, hash_) for hash_ in exclude if hash_],
            is_over=(lambda: time.monotonic() > until) if run.is_remote else None,
        ):
            if not run.is_remote or entry.meta.committer == run.who:
                yield entry.hash
    except (NotFound, InvalidInput):
        return


def _head(repository: ReadableRepository, branch: str) -> str:
    with suppress(ReferenceNotFound):
        return repository.reference(branch).hash
    return ""


def is_guarding(repository: ReadableRepository, run: PipelineRun, until: float) -> bool:
    """Returns whether a branch or tag, other than that of the run, has commits of a failed run.

    Not if its target has them: then someone has merged them nevertheless. Cost: O(commits of the
    run and of its target since then), and one test for each reference. Raises `TimeoutError` if the
    record of a caller of a server needs more time than `until`: it can name any commits.
    """
    if run.state is RunState.PUBLISHED:
        return False
    commits = list(_commits(run, repository, until)) if run.head else []
    if not commits:
        return False
    heads = {
        reference.name: reference.hash
        for reference in repository.references()
        if reference.name != run.branch
    }
    descendants = repository.descendants_among(set(heads.values()), commits[-1])
    return bool(descendants) and heads.get(run.target) not in descendants
