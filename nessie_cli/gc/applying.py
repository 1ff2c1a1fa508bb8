"""What was approved is done: everything is marked once more, and what has become live since, or may have, stays; the rest is removed.

It can be stopped at any point and gone on with: the audit trail tells what was removed, and each time begins with a mark of its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol

from nessie_cli.errors import InvalidInput, NotAllowed, ReferenceMoved, StoreUnavailable
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


class Revived(NamedTuple):
    """A file that has become live since the mark, by its normal path, and the content that needs it.

    With `is_base`, anything below the path may be live: the content cannot be read.
    """

    path: str
    key: str
    reference: str
    is_base: bool = False


class Marker(Protocol):
    """Says what is live in a repository, by the settings of a run."""

    def verify(self) -> int | None:
        """Verify the objects that marking reads; returns how many there are, None if this repository cannot be verified from here.

        Raises `DamagedObject`.
        """

    def mark(self, marks: Marks) -> Marked:
        """Mark what is live now."""

    def revived(self) -> Iterator[Revived]:
        """Files that have become live since the mark, or since the last call, because a reference was made or moved or a batch was staged."""


def approve(run: Run, by: str, now: datetime, digest: str | None = None) -> Approval:
    """Say that the candidates of a run may be deleted; `digest` insists on those that were reviewed. To be called under the run's lock.

    Raises `InvalidInput` for a run that has no plan, `NotAllowed` where there are other candidates than reviewed.
    """
    if run.info.state not in (State.PLANNED, State.APPROVED):
        raise InvalidInput(
            f"run {run.id} is {run.info.state}; only a run that is PLANNED can be approved. Hint: `nessie gc show {run.id}` shows the next step"
        )
    found = run.digest()
    if digest is not None and not (digest and found.startswith(digest)):
        raise NotAllowed(
            f"run {run.id}: the candidates have the digest {found[:12]}, not {digest[:12]!r}. Hint: review them again"
        )
    approval = Approval(
        by=by,
        time=now,
        digest=found,
        candidates=run.info.counts.get("candidates", 0),
        bytes=run.info.counts.get("candidateBytes", 0),
    )
    run.approve(approval)
    return approval


def need_approval(run: Run) -> Approval:
    """The approval of what there is to be deleted now; raises `NotAllowed` where nobody has given it, or for something else."""
    approval = run.approval()
    if run.info.state not in APPLICABLE or approval is None:
        raise NotAllowed(
            f"run {run.id} is {run.info.state}: it has not been approved. Hint: `nessie gc show {run.id}` shows the next step"
        )
    if approval.digest != run.digest():
        raise NotAllowed(
            f"run {run.id}: the candidates have changed since {approval.by} approved them. Hint: review and approve them again"
        )
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
        return {_COUNTS[outcome]: self.outcomes.get(outcome, 0) for outcome in Outcome} | {
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
    """Delete the approved candidates of a run that are still garbage; to be called under the run's lock.

    Verifies the store and marks again first. An error before the first deletion deletes nothing; one between two batches leaves the run to be
    gone on with. Raises what `need_approval` and the marker raise, and `ReferenceMoved` before a batch if a candidate has become live since the
    mark. Memory: some 100 bytes for each candidate.
    """
    need_approval(run)
    marker.verify()
    if dry_run:
        return _rehearsed(run, _judge(run, marker), progress)
    with run.failing():
        run.reach(State.APPLYING, clock())
        removing = _Removing(
            run,
            marker,
            _judge(run, marker),
            Remover(Scope(run.info.settings.warehouse), properties),
        )
        applied = removing.remove(clock, progress)
        partly = applied.outcomes.get(Outcome.FAILED, 0) > 0
        run.reach(State.PARTLY if partly else State.APPLIED, clock(), applied.counts)
    return applied


# -- what stays ---------------------------------------------------------------------------------------------------------------------------


class _Judge:
    """Says of each candidate why it stays; None for one that is to be removed. `wanted` are all candidates, by digest of their paths."""

    def __init__(
        self, settled: set[int], wanted: set[int], live: set[int], protected: Iterable[str]
    ) -> None:
        self._settled = settled
        self._wanted = wanted
        self._live = live
        self._protected = tuple(protected)
        self._revived: list[Revived] = []
        """Places of contents that became live and cannot be read."""

    def is_settled(self, candidate: Candidate) -> bool:
        """Whether it was removed before."""
        return _digest(candidate.location) in self._settled

    def stays(self, candidate: Candidate, path: str) -> Removed | None:
        """Why a candidate stays."""
        if _digest(path) in self._live:
            return Removed(candidate.location, Outcome.LIVE, "has become live since the plan")
        if path.startswith(self._protected):
            return Removed(
                candidate.location,
                Outcome.PROTECTED,
                "belongs to a content that cannot be read now",
            )
        return None

    def need_dead(self, revived: Iterable[Revived], going: Iterable[tuple[Candidate, str]]) -> None:
        """Raises `ReferenceMoved` if a candidate of the run has become live, or one that is about to go may have."""
        for one in revived:
            if one.is_base:
                self._revived.append(one)
            elif _digest(one.path) in self._wanted:
                raise _became_live(one, one.path)
        for _, path in going:
            for one in self._revived:
                if path.startswith(f"{one.path.rstrip('/')}/"):
                    raise _became_live(one, path)


def _became_live(one: Revived, path: str) -> ReferenceMoved:
    return ReferenceMoved(
        f"{one.key} on {one.reference} has become live since the run was marked and needs {path}, a candidate; nothing more is deleted. "
        "Hint: apply the run again, it keeps what is live now"
    )


def _judge(run: Run, marker: Marker) -> _Judge:
    """Mark again, and keep what that finds."""
    marks = run.marks(again=True)
    run.forget(*marks)
    marker.mark(marks)
    wanted = {
        _digest(path)
        for batch in run.dataset("candidates").batches(["path"])
        for path in batch.column("path").to_pylist()
    }
    live = {
        found
        for batch in marks.live.batches(["path"])
        for found in map(_digest, batch.column("path").to_pylist())
        if found in wanted
    }
    return _Judge(
        {_digest(location) for location in Trail(run.audit_path).settled()},
        wanted,
        live,
        _protected(marks.findings),
    )


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


class _Removing:
    """Removes the candidates of a run, batch by batch."""

    def __init__(self, run: Run, marker: Marker, judge: _Judge, remover: Remover) -> None:
        self._run = run
        self._marker = marker
        self._judge = judge
        self._remover = remover
        self._trail = Trail(run.audit_path)
        self._interrupted = self._trail.begun()
        self._number = self._trail.last_batch()

    def remove(self, clock: Callable[[], datetime], progress: Progress) -> Applied:
        total, done = self._run.info.counts.get("candidates"), 0
        outcomes: Counter[Outcome] = Counter()
        with self._run.dataset("kept").writing(_kept_schema()) as keep:
            for batch in _batches(candidates(self._run)):
                results = list(self._batch(batch, clock))
                outcomes.update(one.outcome for one in results)
                keep(
                    _kept_rows(
                        one for one in results if one.outcome not in (Outcome.DELETED, Outcome.GONE)
                    )
                )
                done += len(batch)
                progress(done, total)
        deleted, gone, deleted_bytes = self._trail.totals()
        return Applied({**outcomes, Outcome.DELETED: deleted, Outcome.GONE: gone}, deleted_bytes)

    def _batch(
        self, batch: Sequence[tuple[Candidate, str]], clock: Callable[[], datetime]
    ) -> Iterator[Removed]:
        going = []
        for candidate, path in batch:
            if self._judge.is_settled(candidate):
                continue
            why = self._judge.stays(candidate, path)
            if why is None:
                going.append((candidate, path))
            else:
                yield why
        if not going:
            return
        self._judge.need_dead(self._marker.revived(), going)
        self._number += 1
        self._trail.begin(self._number, clock(), [candidate for candidate, _ in going])
        removed = [
            _of_before(one, self._interrupted)
            for one in self._remover.remove([candidate for candidate, _ in going])
        ]
        self._trail.end(self._number, clock(), removed)
        _need_answer(removed)
        yield from removed


def _need_answer(removed: Iterable[Removed]) -> None:
    """Raises `StoreUnavailable` where a file system answers no more: all that is left would fail, too, one after the other."""
    for one in removed:
        if one.silent:
            raise StoreUnavailable(f"{one.location}: cannot be deleted: {one.message}")


def _of_before(one: Removed, interrupted: set[str]) -> Removed:
    """A file that is gone, of a batch that was begun and interrupted, was removed by that."""
    return (
        one._replace(outcome=Outcome.DELETED)
        if one.outcome is Outcome.GONE and one.location in interrupted
        else one
    )


def _rehearsed(run: Run, judge: _Judge, progress: Progress) -> Applied:
    outcomes: Counter[Outcome] = Counter()
    size = 0
    scope = Scope(run.info.settings.warehouse)
    for done, (candidate, path) in enumerate(candidates(run), 1):
        why = judge.stays(candidate, path)
        if not judge.is_settled(candidate):
            outcome = (
                why.outcome
                if why
                else Outcome.DELETED
                if scope.holds(candidate.location)
                else Outcome.OUTSIDE
            )
            outcomes[outcome] += 1
            size += candidate.size if outcome is Outcome.DELETED else 0
        progress(done, run.info.counts.get("candidates"))
    return Applied(outcomes, size)


def _batches(items: Iterator[tuple[Candidate, str]]) -> Iterator[list[tuple[Candidate, str]]]:
    while batch := list(islice(items, FILES_PER_BATCH)):
        yield batch


def _kept_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [("location", pa.string()), ("outcome", pa.string()), ("message", pa.string())]
    )


def _kept_rows(kept: Iterable[Removed]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(
        [one._asdict() | {"outcome": one.outcome.value} for one in kept], schema=_kept_schema()
    )
