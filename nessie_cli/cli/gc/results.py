"""The results of the commands of `nessie gc`: a run, and the next step."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Annotated, Any, Literal, Self

from msgspec.structs import replace

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.errors.report import PARTLY_DONE
from nessie_cli.gc.phases import MARKED, is_incomplete
from nessie_cli.gc.run import Approval, PinnedReference, Run, RunState
from nessie_cli.render.text import counted, human_size
from nessie_cli.wire.record import NOT_JSON
from nessie_cli.wire.shape import Shape, of
from nessie_cli.wire.shapes import Count, Digest, Hash, Instant

_NEXT_STEPS = {
    RunState.MARKING: "nessie gc mark --resume {run}",
    RunState.MARKED: "nessie gc plan {run} --warehouse LOCATION",
    RunState.PLANNED: "nessie gc show {run} --candidates, then nessie gc approve {run}",
    RunState.APPROVED: "nessie gc apply {run}",
    RunState.APPLYING: "nessie gc apply {run}",
    RunState.PARTLY: "nessie gc apply {run}",
}
_OUTSIDE = "OUTSIDE"
"""The kind of a finding: a table outside of the locations where files may be deleted."""


class CollectorCutoff(Shape):
    """The retention policy of the references whose names match a pattern."""

    pattern: str = of(itemgetter(0))
    policy: str = of(itemgetter(1))


class CollectedReference(Shape):
    """A reference, and its hash when the run was marked."""

    type: Literal["BRANCH", "TAG"]
    name: str
    hash: Hash


class CollectorApproval(Shape):
    """An approval: who approved how many files and bytes. `digest` identifies the candidates."""

    by: str
    time: Instant
    digest: Digest
    candidates: Count
    bytes: Count


class CollectorRun(Result, frozen=True, kw_only=True):
    """A run of the garbage collection.

    `digest` is that of the candidates, and null before planning. `failure` is the reason for the
    state FAILED.
    """

    run: str
    state: RunState
    folder: str
    created: datetime
    store: str
    engine: Annotated[str, Literal["local", "spark"]]
    reference_time: datetime
    default_cutoff: str
    cutoffs: Sequence[Annotated[tuple[str, str], CollectorCutoff]]
    snapshots: Annotated[str, Literal["listed", "referenced"]]
    grace_seconds: Annotated[int, Count]
    warehouse: Sequence[str]
    catalog: str | None
    references: Sequence[Annotated[PinnedReference, CollectedReference]]
    times: Mapping[str, datetime]
    counts: Mapping[str, Annotated[int, Count]]
    digest: Annotated[str, Digest] | None
    approval: Annotated[Approval, CollectorApproval] | None
    failure: str | None
    notes: Annotated[Sequence[str], NOT_JSON] = ()
    is_partly_done: Annotated[bool, NOT_JSON] = False

    @classmethod
    def of(cls, run: Run, **more: Any) -> Self:
        """Returns the result for a run; `more` are the fields of a subclass."""
        info, settings = run.info, run.info.settings
        return cls(
            run=info.id,
            state=info.state,
            folder=str(run.folder),
            created=info.created,
            store=settings.store,
            engine=settings.engine,
            reference_time=settings.reference_time,
            default_cutoff=settings.default_cutoff,
            cutoffs=settings.cutoffs,
            snapshots=settings.snapshots,
            grace_seconds=settings.grace,
            warehouse=settings.warehouse,
            catalog=settings.catalog,
            references=info.references,
            times=info.times,
            counts=dict(sorted(info.counts.items())),
            digest=run.digest() if run.dataset("candidates").exists else None,
            approval=run.approval(),
            failure=info.error,
            **more,
        )

    @property
    def exit_code(self) -> int:
        """8 if the step was incomplete."""
        return PARTLY_DONE if self.is_partly_done else 0

    @property
    def next_step(self) -> str:
        """The next command, or an empty text. After a failure it is the command that failed."""
        state = self.state
        if state is RunState.FAILED:
            state = (
                RunState.APPLYING
                if self.approval
                else RunState.MARKED
                if MARKED in self.times
                else RunState.MARKING
            )
        if state is RunState.PLANNED and not self.counts.get("candidates"):
            return ""
        return _NEXT_STEPS.get(state, "").format(run=self.run)

    @property
    def summary(self) -> str:
        """The run in one line: its name, state and counts."""
        counts = self.counts
        parts = [f"run {self.run}: {self.state}"]
        if "live" in counts:
            contents = counted(counts.get("contents", 0), "content")
            parts.append(f"{counted(counts['live'], 'live file')} of {contents}")
        if "deleted" in counts:
            candidates = counted(counts.get("candidates", 0), "candidate")
            size = human_size(counts.get("deletedBytes", 0))
            parts.append(f"{counts['deleted']:,} of {candidates} deleted ({size})")
        elif "candidates" in counts:
            size = human_size(counts.get("candidateBytes", 0))
            parts.append(f"{counted(counts['candidates'], 'file')} to be deleted ({size})")
        return ", ".join(parts)


def finished(run: Run) -> CollectorRun:
    """Returns the result of a step, with the next step. Exits with 8 if it was incomplete."""
    found = CollectorRun.of(run)
    notes = []
    if run.info.state is RunState.PARTLY:
        failed = counted(run.info.counts.get("failed", 0), "file")
        notes.append(f"{failed} could not be deleted; `nessie gc show {run.id} --kept` shows why")
    elif run.info.state in (RunState.MARKED, RunState.PLANNED) and is_incomplete(run):
        notes.append(
            f"some files could not be read or listed; `nessie gc show {run.id}` shows which"
        )
    partly = bool(notes)
    if run.info.state is RunState.PLANNED and (outside := _outside(run)):
        tables = "1 table lies" if outside == 1 else f"{outside:,} tables lie"
        notes.append(
            f"{tables} outside of the named locations; `nessie gc show {run.id}` shows which"
        )
    if found.next_step:
        notes.append(f"next: {found.next_step}")
    return replace(found, notes=notes, is_partly_done=partly)


def _outside(run: Run) -> int:
    """The number of tables outside of the locations where files may be deleted."""
    findings = run.dataset("plan-findings")
    return (
        sum(row["kind"] == _OUTSIDE for row in findings.records(["kind"])) if findings.exists else 0
    )


def show_summary(result: CollectorRun, output: Output) -> None:
    """Prints the run in one line."""
    output.say(result.summary)


def clock() -> datetime:
    """Returns the current time. A run takes too long for the fixed time of an invocation."""
    return datetime.now(UTC)
