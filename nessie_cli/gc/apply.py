"""Apply: marks again, then deletes the approved candidates that are still not live.

It can be interrupted at any point and resumed. The audit trail records the deleted files, and each
attempt begins with a new mark.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from nessie_cli.errors import InvalidInput, NotAllowed, ReferenceMoved, StoreUnavailable
from nessie_cli.gc.audit_trail import Trail
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.removal import RemovalCandidate, RemovalOutcome, RemovalScope, Removed, Remover
from nessie_cli.gc.run import (
    Approval,
    ForeignLocation,
    MarkDatasets,
    PinnedReference,
    Run,
    RunState,
)
from nessie_cli.iceberg.locations import LocationSet, normalised
from nessie_cli.model.batches import batched
from nessie_cli.model.progress import Progress

FILES_PER_BATCH = 500
"""Files between two lines of the audit trail."""
APPLICABLE = frozenset({RunState.APPROVED, RunState.APPLYING, RunState.PARTLY, RunState.FAILED})
BROKEN = "BROKEN"


class MarkResult(Protocol):
    """The result of a mark."""

    @property
    def references(self) -> tuple[PinnedReference, ...]:
        """The references and their commits."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts by name."""


Mark = Callable[[MarkDatasets], MarkResult]
"""Marks the files that are live now, by the settings of a run."""


class Revived(NamedTuple):
    """A file that has become live since the mark, and the content that needs it.

    With `is_base`, anything below the path may be live: the content cannot be read.
    """

    path: str
    key: str
    reference: str
    is_base: bool = False


class Marker(Protocol):
    """Finds the live files of a repository, by the settings of a run."""

    def verify(self) -> int | None:
        """Verifies the objects that marking reads, and returns their number.

        Returns None if this repository cannot be verified from here. Raises `DamagedObject`.
        """

    def mark(self, marks: MarkDatasets) -> MarkResult:
        """Marks the files that are live now."""

    def revived(self) -> Iterator[Revived]:
        """Yields files that have become live since the mark or the last call.

        A reference was created or moved, or a batch was staged.
        """

    def foreign(self) -> Sequence[ForeignLocation]:
        """Returns the locations of tables that another catalog may write now."""


def approve(run: Run, by: str, now: datetime, digest: str | None = None) -> Approval:
    """Approves the candidates of a run. The caller holds the run's lock.

    `digest` is the beginning of the digest of the reviewed candidates. Raises `InvalidInput` if the
    run has no plan, and `NotAllowed` if the digest does not match.
    """
    if run.info.state not in (RunState.PLANNED, RunState.APPROVED):
        raise InvalidInput(
            f"run {run.id} is {run.info.state}; only a run that is PLANNED can be approved",
            hint=f"`nessie gc show {run.id}` shows the next step",
        )
    current_digest = run.digest()
    if digest is not None and not (digest and current_digest.startswith(digest)):
        raise NotAllowed(
            (
                f"run {run.id}: the candidates have the digest {current_digest[:12]}, "
                f"not {digest[:12]!r}"
            ),
            hint="review them again",
        )
    approval = Approval(
        by=by,
        time=now,
        digest=current_digest,
        candidates=run.info.counts.get("candidates", 0),
        bytes=run.info.counts.get("candidateBytes", 0),
    )
    run.approve(approval)
    return approval


def require_approval(run: Run) -> Approval:
    """Returns the approval of the current candidates. Raises `NotAllowed` if there is none."""
    approval = run.approval()
    if run.info.state not in APPLICABLE or approval is None:
        raise NotAllowed(
            f"run {run.id} is {run.info.state}; only an approved run can be applied",
            hint=f"`nessie gc show {run.id}` shows the next step",
        )
    if approval.digest != run.digest():
        raise NotAllowed(
            f"run {run.id}: the candidates have changed since {approval.by} approved them",
            hint="review and approve them again",
        )
    return approval


_COUNTS = {outcome: outcome.value.lower() for outcome in RemovalOutcome} | {
    RemovalOutcome.LIVE: "becameLive"
}
"""The name of each count. The mark has a count `live` of its own."""


class Applied(NamedTuple):
    """Numbers of candidates by outcome and the deleted bytes, real or those of a dry run."""

    outcomes: Mapping[RemovalOutcome, int]
    deleted_bytes: int

    @property
    def counts(self) -> dict[str, int]:
        """The counts as in `run.json`."""
        return {_COUNTS[outcome]: self.outcomes.get(outcome, 0) for outcome in RemovalOutcome} | {
            "deletedBytes": self.deleted_bytes
        }


def apply(
    run: Run,
    marker: Marker,
    properties: Mapping[str, str],
    clock: Callable[[], datetime],
    progress: Progress,
    *,
    dry_run: bool = False,
) -> Applied:
    """Deletes the approved candidates of a run that are still garbage.

    The caller holds the run's lock. Verifies the store and marks again first. After an error
    between two batches, the run can be resumed. Raises the errors of `require_approval` and of the
    marker, and `ReferenceMoved` before a batch if a candidate has become live since the mark.
    Memory: about 100 bytes for each candidate.
    """
    require_approval(run)
    marker.verify()
    if dry_run:
        return _rehearsed(run, _filter(run, marker), progress)
    with run.failing():
        run.reach(RunState.APPLYING, clock())
        removing = _Removing(
            run,
            marker,
            _filter(run, marker),
            Remover(RemovalScope(run.info.settings.warehouse), properties),
        )
        applied = removing.remove(clock, progress)
        partly = applied.outcomes.get(RemovalOutcome.FAILED, 0) > 0
        run.reach(RunState.PARTLY if partly else RunState.APPLIED, clock(), applied.counts)
    return applied


# -- candidates that are kept --------------------------------------------------------------------


class _Filter:
    """Decides which candidates are kept. `candidates` are the digests of their paths."""

    def __init__(
        self, settled: set[int], candidates: set[int], live: set[int], protected: Iterable[str]
    ) -> None:
        self._settled = settled
        self._candidates = candidates
        self._live = live
        self._protected = tuple(protected)
        self._revived: list[Revived] = []
        """Base locations of contents that became live and cannot be read."""
        self._foreign = LocationSet(())

    def keep_foreign(self, foreign: Iterable[ForeignLocation]) -> None:
        """Keeps the candidates below these locations from now on, and no longer earlier ones."""
        self._foreign = LocationSet(place.location for place in foreign)

    def is_settled(self, candidate: RemovalCandidate) -> bool:
        """Whether a candidate was removed before."""
        return _digest(candidate.location) in self._settled

    def reason_to_keep(self, candidate: RemovalCandidate, path: str) -> Removed | None:
        """Returns the reason to keep a candidate, None if it can be deleted."""
        if _digest(path) in self._live:
            return Removed(
                candidate.location, RemovalOutcome.LIVE, "has become live since the plan"
            )
        if path.startswith(self._protected):
            return Removed(
                candidate.location,
                RemovalOutcome.PROTECTED,
                "belongs to a content that cannot be read now",
            )
        if self._foreign.around(path) is not None:
            return Removed(
                candidate.location,
                RemovalOutcome.PROTECTED,
                "belongs to a table that another catalog may write",
            )
        return None

    def check_still_dead(
        self, revived: Iterable[Revived], going: Iterable[tuple[RemovalCandidate, str]]
    ) -> None:
        """Raises `ReferenceMoved` if a candidate has become live.

        A candidate that is about to be deleted must not be in a base of `revived` contents either.
        """
        for use in revived:
            if use.is_base:
                self._revived.append(use)
            elif _digest(use.path) in self._candidates:
                raise _became_live(use, use.path)
        for _, path in going:
            for use in self._revived:
                if path.startswith(f"{use.path.rstrip('/')}/"):
                    raise _became_live(use, path)


def _became_live(use: Revived, path: str) -> ReferenceMoved:
    return ReferenceMoved(
        (
            f"{use.key} on {use.reference} has become live since the run was marked, and it needs"
            f" the candidate {path}; nothing more is deleted"
        ),
        hint="apply the run again to keep the files that are live now",
    )


def _filter(run: Run, marker: Marker) -> _Filter:
    """Marks again, and returns the filter of the candidates."""
    marks = run.marks(again=True)
    run.forget(*marks)
    marker.mark(marks)
    candidate_digests = {
        _digest(path)
        for batch in run.dataset("candidates").batches(["path"])
        for path in batch.column("path").to_pylist()
    }
    live = {
        digest
        for batch in marks.live.batches(["path"])
        for digest in map(_digest, batch.column("path").to_pylist())
        if digest in candidate_digests
    }
    filter_ = _Filter(
        {_digest(location) for location in Trail(run.audit_path).settled()},
        candidate_digests,
        live,
        _protected(marks.findings),
    )
    filter_.keep_foreign(marker.foreign())
    return filter_


def _protected(findings: Dataset) -> Iterator[str]:
    """Yields prefixes of paths that are kept, because a content could not be read.

    The prefix is empty, and keeps everything, if the location of the content is unknown.
    """
    for finding in findings.records(["kind", "base"]):
        if finding["base"]:
            yield f"{normalised(finding['base']).rstrip('/')}/"
        elif finding["kind"] == BROKEN:
            yield ""


def _digest(text: str) -> int:
    """Returns a digest of 8 bytes. If two paths collide, a file is kept that could be deleted."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


# -- deletion -------------------------------------------------------------------------------------


def candidates(run: Run) -> Iterator[tuple[RemovalCandidate, str]]:
    """Yields the candidates of a run in order, each with its normal path."""
    for row in run.dataset("candidates").records(["path", "location", "size", "modified", "base"]):
        yield (
            RemovalCandidate(row["location"], row["size"], row["modified"], row["base"]),
            row["path"],
        )


class _Removing:
    """Removes the candidates of a run, batch by batch."""

    def __init__(self, run: Run, marker: Marker, filter_: _Filter, remover: Remover) -> None:
        self._run = run
        self._marker = marker
        self._filter = filter_
        self._remover = remover
        self._trail = Trail(run.audit_path)
        self._interrupted = self._trail.begun()
        self._number = self._trail.last_batch()

    def remove(self, clock: Callable[[], datetime], progress: Progress) -> Applied:
        total, done = self._run.info.counts.get("candidates"), 0
        outcomes: Counter[RemovalOutcome] = Counter()
        with self._run.dataset("kept").writing(_kept_schema()) as keep:
            for batch in batched(candidates(self._run), FILES_PER_BATCH):
                results = list(self._batch(batch, clock))
                outcomes.update(result.outcome for result in results)
                keep(
                    _kept_rows(
                        result
                        for result in results
                        if result.outcome not in (RemovalOutcome.DELETED, RemovalOutcome.GONE)
                    )
                )
                done += len(batch)
                progress(done, total)
        deleted, gone, deleted_bytes = self._trail.totals()
        return Applied(
            {**outcomes, RemovalOutcome.DELETED: deleted, RemovalOutcome.GONE: gone}, deleted_bytes
        )

    def _batch(
        self, batch: Sequence[tuple[RemovalCandidate, str]], clock: Callable[[], datetime]
    ) -> Iterator[Removed]:
        going = []
        # A table may have been imported or exported since the plan or the last batch.
        self._filter.keep_foreign(self._marker.foreign())
        for candidate, path in batch:
            if self._filter.is_settled(candidate):
                continue
            why = self._filter.reason_to_keep(candidate, path)
            if why is None:
                going.append((candidate, path))
            else:
                yield why
        if not going:
            return
        self._filter.check_still_dead(self._marker.revived(), going)
        self._number += 1
        self._trail.begin(self._number, clock(), [candidate for candidate, _ in going])
        removed = [
            _of_before(removal, self._interrupted)
            for removal in self._remover.remove([candidate for candidate, _ in going])
        ]
        self._trail.end(self._number, clock(), removed)
        _need_answer(removed)
        yield from removed


def _need_answer(removed: Iterable[Removed]) -> None:
    """Raises `StoreUnavailable` if a file system does not answer, because all others would fail."""
    for removal in removed:
        if removal.silent:
            raise StoreUnavailable(f"{removal.location} cannot be deleted: {removal.message}")


def _of_before(removal: Removed, interrupted: set[str]) -> Removed:
    """Counts a missing file of an interrupted batch as deleted by that batch."""
    return (
        removal._replace(outcome=RemovalOutcome.DELETED)
        if removal.outcome is RemovalOutcome.GONE and removal.location in interrupted
        else removal
    )


def _rehearsed(run: Run, filter_: _Filter, progress: Progress) -> Applied:
    outcomes: Counter[RemovalOutcome] = Counter()
    size = 0
    scope = RemovalScope(run.info.settings.warehouse)
    for done, (candidate, path) in enumerate(candidates(run), 1):
        why = filter_.reason_to_keep(candidate, path)
        if not filter_.is_settled(candidate):
            outcome = (
                why.outcome
                if why
                else RemovalOutcome.DELETED
                if scope.holds(candidate.location)
                else RemovalOutcome.OUTSIDE
            )
            outcomes[outcome] += 1
            size += candidate.size if outcome is RemovalOutcome.DELETED else 0
        progress(done, run.info.counts.get("candidates"))
    return Applied(outcomes, size)


def _kept_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [("location", pa.string()), ("outcome", pa.string()), ("message", pa.string())]
    )


def _kept_rows(removals: Iterable[Removed]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(
        [removal._asdict() | {"outcome": removal.outcome.value} for removal in removals],
        schema=_kept_schema(),
    )
