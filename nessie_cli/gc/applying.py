"""What was approved is done: everything is marked once more, and what has become live since, or may have, stays; the rest is removed.

It can be stopped at any point and gone on with: the audit trail tells what was removed, and each time begins with a mark of its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.gc.audit import Trail
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.removal import Candidate, Outcome, Removed, Remover, Scope
from nessie_cli.gc.run import Approval, Marks, Pinned, Run, State
from nessie_cli.iceberg.locations import normalised
from nessie_cli.model.progress import Progress

FILES_PER_BATCH = 500
"""Files between two lines of the audit trail."""
APPLICABLE = frozenset({State.APPROVED, State.APPLYING, State.PARTLY, State.FAILED})
BROKEN = "BROKEN"


class Marked(Protocol):
    """What a mark answers."""

    @property
    def references(self) -> tuple[Pinned, ...]:
        """Where the references stood."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How much was found."""


Mark = Callable[[Marks], Marked]
"""Marks what is live now, by the settings of the run."""


def approve(run: Run, by: str, now: datetime, digest: str | None = None) -> Approval:
    """Say that the candidates of a run may be deleted; `digest` insists on those that were reviewed. To be called under the run's lock.

    Raises `InvalidInput` for a run that has no plan, `NotAllowed` where there are other candidates than reviewed.
    """
    if run.info.state not in (State.PLANNED, State.APPROVED):
        raise InvalidInput(f"run {run.id} is {run.info.state}; only a run that is PLANNED can be approved")
    found = run.digest()
    if digest is not None and not (digest and found.startswith(digest)):
        raise NotAllowed(f"run {run.id}: the candidates are not those with the digest {digest[:12]}, theirs is {found[:12]}; review them again")
    approval = Approval(
        by=by, time=now, digest=found, candidates=run.info.counts.get("candidates", 0), bytes=run.info.counts.get("candidateBytes", 0)
    )
    run.approve(approval)
    return approval


def need_approval(run: Run) -> Approval:
    """The approval of what there is to be deleted now; raises `NotAllowed` where nobody has given it, or for something else."""
    approval = run.approval()
    if run.info.state not in APPLICABLE or approval is None:
        raise NotAllowed(f"run {run.id} is {run.info.state}: nobody has approved it; review it with `nessie gc show`, then `nessie gc approve`")
    if approval.digest != run.digest():
        raise NotAllowed(f"run {run.id}: the candidates are not those that {approval.by} has approved; review them and approve them again")
    return approval


_COUNTS = {outcome: outcome.value.lower() for outcome in Outcome} | {Outcome.LIVE: "becameLive"}
"""The name of each count; that of live files is the mark's."""


class Applied(NamedTuple):
    """What became of the candidates in all, by outcome, and how many bytes were deleted. After a dry run: what would become of them."""

    outcomes: Mapping[Outcome, int]
    deleted_bytes: int

    @property
    def counts(self) -> dict[str, int]:
        """For `run.json` and people."""
        return {_COUNTS[outcome]: self.outcomes.get(outcome, 0) for outcome in Outcome} | {"deletedBytes": self.deleted_bytes}


def apply(
    run: Run, mark: Mark, properties: Mapping[str, str], clock: Callable[[], datetime], progress: Progress, *, dry_run: bool = False
) -> Applied:
    """Delete the approved candidates of a run that are still garbage; to be called under the run's lock.

    Marks again first. An error before the first deletion deletes nothing; one between two batches leaves the run to be gone on with.
    Raises what `need_approval` and `mark` raise. Memory: some 100 bytes for each candidate.
    """
    need_approval(run)
    if dry_run:
        return _rehearsed(run, _judge(run, mark), progress)
    with run.failing():
        run.reach(State.APPLYING, clock())
        applied = _remove(run, _judge(run, mark), Remover(Scope(run.info.settings.warehouse), properties), clock, progress)
        partly = applied.outcomes.get(Outcome.FAILED, 0) > 0
        run.reach(State.PARTLY if partly else State.APPLIED, clock(), applied.counts)
    return applied


# -- what stays ---------------------------------------------------------------------------------------------------------------------------


class _Judge:
    """Says of each candidate why it stays; None for one that is to be removed."""

    def __init__(self, settled: set[int], live: set[int], protected: Iterable[str]) -> None:
        self._settled = settled
        self._live = live
        self._protected = tuple(protected)

    def is_settled(self, candidate: Candidate) -> bool:
        """Whether it was removed before."""
        return _digest(candidate.location) in self._settled

    def stays(self, candidate: Candidate, path: str) -> Removed | None:
        """Why a candidate stays."""
        if _digest(path) in self._live:
            return Removed(candidate.location, Outcome.LIVE, "has become live since the plan")
        if path.startswith(self._protected):
            return Removed(candidate.location, Outcome.PROTECTED, "belongs to a content that cannot be read now")
        return None


def _judge(run: Run, mark: Mark) -> _Judge:
    """Mark again, and keep what that finds."""
    marks = run.marks(again=True)
    run.forget(*marks)
    mark(marks)
    wanted = {_digest(path) for batch in run.dataset("candidates").batches(["path"]) for path in batch.column("path").to_pylist()}
    live = {found for batch in marks.live.batches(["path"]) for found in map(_digest, batch.column("path").to_pylist()) if found in wanted}
    return _Judge({_digest(location) for location in Trail(run.audit_path).settled()}, live, _protected(marks.findings))


def _protected(findings: Dataset) -> Iterator[str]:
    """What paths begin with that nothing is deleted of, because a content could not be read; everything where nobody knows where it is."""
    for finding in findings.records(["kind", "base"]):
        if finding["base"]:
            yield f"{normalised(finding['base']).rstrip('/')}/"
        elif finding["kind"] == BROKEN:
            yield ""


def _digest(text: str) -> int:
    """A text in eight bytes. Where two texts share one, a file stays that could go."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


# -- what goes ----------------------------------------------------------------------------------------------------------------------------


def candidates(run: Run) -> Iterator[tuple[Candidate, str]]:
    """The candidates of a run, in order, each with its normalised path."""
    for row in run.dataset("candidates").records(["path", "location", "size", "modified", "base"]):
        yield Candidate(row["location"], row["size"], row["modified"], row["base"]), row["path"]


def _remove(run: Run, judge: _Judge, remover: Remover, clock: Callable[[], datetime], progress: Progress) -> Applied:
    trail = Trail(run.audit_path)
    interrupted = trail.begun()
    total, done, number = run.info.counts.get("candidates"), 0, trail.last_batch()
    outcomes: Counter[Outcome] = Counter()
    with run.dataset("kept").writing(_kept_schema()) as keep:
        for batch in _batches(candidates(run)):
            left = [(candidate, path) for candidate, path in batch if not judge.is_settled(candidate)]
            staying = {candidate.location: why for candidate, path in left if (why := judge.stays(candidate, path))}
            going = [candidate for candidate, _ in left if candidate.location not in staying]
            results = list(staying.values())
            if going:
                number += 1
                trail.begin(number, clock(), going)
                removed = [_of_before(one, interrupted) for one in remover.remove(going)]
                trail.end(number, clock(), removed)
                _need_answer(removed)
                results += removed
            outcomes.update(one.outcome for one in results)
            keep(_kept_rows(one for one in results if one.outcome not in (Outcome.DELETED, Outcome.GONE)))
            done += len(batch)
            progress(done, total)
    deleted, gone, deleted_bytes = trail.totals()
    return Applied({**outcomes, Outcome.DELETED: deleted, Outcome.GONE: gone}, deleted_bytes)


def _need_answer(removed: Iterable[Removed]) -> None:
    """Raises `StoreUnavailable` where a file system answers no more: all that is left would fail, too, one after the other."""
    for one in removed:
        if one.silent:
            raise StoreUnavailable(f"{one.location}: cannot be deleted: {one.message}")


def _of_before(one: Removed, interrupted: set[str]) -> Removed:
    """A file that is gone, of a batch that was begun and interrupted, was removed by that."""
    return one._replace(outcome=Outcome.DELETED) if one.outcome is Outcome.GONE and one.location in interrupted else one


def _rehearsed(run: Run, judge: _Judge, progress: Progress) -> Applied:
    outcomes: Counter[Outcome] = Counter()
    size = 0
    scope = Scope(run.info.settings.warehouse)
    for done, (candidate, path) in enumerate(candidates(run), 1):
        why = judge.stays(candidate, path)
        if not judge.is_settled(candidate):
            outcome = why.outcome if why else Outcome.DELETED if scope.holds(candidate.location) else Outcome.OUTSIDE
            outcomes[outcome] += 1
            size += candidate.size if outcome is Outcome.DELETED else 0
        progress(done, run.info.counts.get("candidates"))
    return Applied(outcomes, size)


def _batches(items: Iterator[tuple[Candidate, str]]) -> Iterator[list[tuple[Candidate, str]]]:
    while batch := list(islice(items, FILES_PER_BATCH)):
        yield batch


def _kept_schema() -> Any:
    import pyarrow as pa

    return pa.schema([("location", pa.string()), ("outcome", pa.string()), ("message", pa.string())])


def _kept_rows(kept: Iterable[Removed]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist([one._asdict() | {"outcome": one.outcome.value} for one in kept], schema=_kept_schema())
