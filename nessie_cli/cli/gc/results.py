"""The results of the commands of `nessie gc`: a run, and the next step."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from msgspec import Meta, Struct

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.errors.report import PARTLY_DONE
from nessie_cli.gc.phases import MARKED, is_incomplete
from nessie_cli.gc.run import Approval, ForeignKind, PinnedReference, Run, RunState
from nessie_cli.render.text import counted, human_size
from nessie_cli.wire.scalars import BranchOrTag, Count, Digest, Hash, Instant, instant

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


Engine = Annotated[str, Meta(extra_json_schema={"enum": ["local", "spark"]})]
Snapshots = Annotated[str, Meta(extra_json_schema={"enum": ["listed", "referenced"]})]


class CollectorCutoff(Struct):
    """The retention policy of the references whose names match a pattern."""

    pattern: str
    policy: str


class CollectedReference(Struct):
    """A reference, and its hash when the run was marked."""

    type: BranchOrTag
    name: str
    hash: Hash

    @classmethod
    def of(cls, pinned: PinnedReference) -> Self:
        """Returns the struct of a reference."""
        return cls(pinned.type, pinned.name, pinned.hash)


class CollectorApproval(Struct):
    """An approval: who approved how many files and bytes. `digest` identifies the candidates."""

    by: str
    time: Instant
    digest: Digest
    candidates: Count
    bytes: Count

    @classmethod
    def of(cls, approval: Approval | None) -> Self | None:
        """Returns the struct of an approval, or None."""
        if approval is None:
            return None
        time, size = instant(approval.time), approval.bytes
        return cls(approval.by, time, approval.digest, approval.candidates, size)


class CollectorRun(Document, frozen=True, kw_only=True):
    """A run of the garbage collection.

    `digest` is that of the candidates, and null before planning. `failure` is the reason for the
    state FAILED.
    """

    run: str
    state: RunState
    folder: str
    created: Instant
    store: str
    engine: Engine
    reference_time: Instant
    default_cutoff: str
    cutoffs: list[CollectorCutoff]
    snapshots: Snapshots
    grace_seconds: Count
    warehouse: list[str]
    catalog: str | None
    references: list[CollectedReference]
    times: dict[str, Instant]
    counts: dict[str, Count]
    digest: Digest | None
    approval: CollectorApproval | None
    failure: str | None

    @classmethod
    def of(cls, run: Run, **more: Any) -> Self:
        """Returns the document of a run; `more` are the fields of a subclass."""
        info, settings = run.info, run.info.settings
        return cls(
            run=info.id,
            state=info.state,
            folder=str(run.folder),
            created=instant(info.created),
            store=settings.store,
            engine=settings.engine,
            reference_time=instant(settings.reference_time),
            default_cutoff=settings.default_cutoff,
            cutoffs=[CollectorCutoff(*cutoff) for cutoff in settings.cutoffs],
            snapshots=settings.snapshots,
            grace_seconds=settings.grace,
            warehouse=list(settings.warehouse),
            catalog=settings.catalog,
            references=list(map(CollectedReference.of, info.references)),
            times={name: instant(time) for name, time in info.times.items()},
            counts=dict(sorted(info.counts.items())),
            digest=run.digest() if run.dataset("candidates").exists else None,
            approval=CollectorApproval.of(run.approval()),
            failure=info.error,
            **more,
        )

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


class CollectorStep(Result, frozen=True):
    """A finished step of a run."""

    document: CollectorRun
    notes: Sequence[str]
    is_partly_done: bool

    @property
    def exit_code(self) -> int:
        """8 if the step was incomplete."""
        return PARTLY_DONE if self.is_partly_done else 0


def finished(run: Run) -> CollectorStep:
    """Returns the result of a step, with the next step. Exits with 8 if it was incomplete."""
    result = CollectorRun.of(run)
    notes = []
    if run.info.state is RunState.PARTLY:
        failed = counted(run.info.counts.get("failed", 0), "file")
        notes.append(f"{failed} could not be deleted; `nessie gc show {run.id} --kept` shows why")
    elif run.info.state in (RunState.MARKED, RunState.PLANNED) and is_incomplete(run):
        notes.append(
            f"some files could not be read or listed; `nessie gc show {run.id}` shows which"
        )
    partly = bool(notes)
    if run.info.state is RunState.PLANNED and (foreign := foreign_note(run)):
        notes.append(foreign)
    if run.info.state is RunState.PLANNED and (outside := _outside(run)):
        tables = "1 table lies" if outside == 1 else f"{outside:,} tables lie"
        notes.append(
            f"{tables} outside of the named locations; `nessie gc show {run.id}` shows which"
        )
    if result.next_step:
        notes.append(f"next: {result.next_step}")
    return CollectorStep(result, notes, partly)


def foreign_note(run: Run) -> str:
    """Returns a remark about tables of other catalogs, whose files a run keeps; or no text."""
    keys: defaultdict[ForeignKind, set[tuple[str, str]]] = defaultdict(set)
    for place in run.info.settings.foreign:
        keys[place.kind].add((place.catalog, place.key))
    if not keys:
        return ""
    tables = " and ".join(
        counted(len(keys[kind]), f"{kind.value.lower()} table")
        for kind in ForeignKind
        if keys[kind]
    )
    return (
        f"run {run.id} keeps the files of {tables}, because another catalog may write them;"
        f" `nessie gc show {run.id}` lists them"
    )


def _outside(run: Run) -> int:
    """The number of tables outside of the locations where files may be deleted."""
    findings = run.dataset("plan-findings")
    return (
        sum(row["kind"] == _OUTSIDE for row in findings.records(["kind"])) if findings.exists else 0
    )


def show_summary(result: CollectorStep, output: Output) -> None:
    """Prints the run in one line."""
    output.say(result.document.summary)


def clock() -> datetime:
    """Returns the current time. A run takes too long for the fixed time of an invocation."""
    return datetime.now(UTC)
