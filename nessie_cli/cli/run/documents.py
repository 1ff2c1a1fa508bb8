"""The JSON of `nessie run`, and how people see a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Self

from msgspec import Struct, field

from nessie_cli.cli.app.result import Document, Listing, Records, Result
from nessie_cli.inspection.text import short_hash
from nessie_cli.model.runs import PipelineRun, RunState
from nessie_cli.render.spans import Column
from nessie_cli.wire.scalars import Instant, instant

COLUMNS = (
    Column("RUN", "name"),
    Column("STATE"),
    Column("STAGE", room="spare"),
    Column("TARGET", "name"),
    Column("BEGAN", "time"),
    Column("EXPIRES", "time", "spare"),
    Column("COMMIT", "hash"),
    Column("COMMAND", room="cut"),
)


class RunCheckResult(Struct, frozen=True):
    """The result of a check: `output` is what a failed one printed."""

    check: str
    passed: bool
    output: str


class RunDocument(Document, frozen=True, kw_only=True):
    """A run.

    `stage` is what it does, or what it failed at: command, check, conflict or publish. `head` is
    the commit that the checks saw, and `result` the commit of the target after the publication.
    """

    id: str
    state: str
    stage: str
    branch: str
    target: str
    base: str
    head: str | None
    result: str | None
    tag: str | None
    key: str | None
    author: str
    host: str
    command: list[str]
    code: str | None
    command_code: int | None = field(name="exitCode")
    reason: str | None
    checks: list[RunCheckResult]
    began: Instant
    ended: Instant | None
    expires: Instant | None

    @classmethod
    def of(cls, run: PipelineRun) -> Self:
        """Returns the document of a run."""
        return cls(
            id=run.id,
            state=run.state,
            stage=run.stage,
            branch=run.branch,
            target=run.target,
            base=run.base,
            head=run.head or None,
            result=run.result or None,
            tag=run.tag or None,
            key=run.key or None,
            author=run.who,
            host=run.host,
            command=list(run.command),
            code=run.code or None,
            command_code=run.exit_code,
            reason=run.reason or None,
            checks=[
                RunCheckResult(result.check, result.passed, result.output) for result in run.results
            ],
            began=instant(_time(run.began)),
            ended=None if run.ended is None else instant(_time(run.ended)),
            expires=None if run.has_ended else instant(_time(run.expires)),
        )


class RunDocuments(Listing, frozen=True, kw_only=True):
    """Runs, the oldest first."""

    listing = "runs"
    runs: Records[RunDocument]


class RunVariable(Struct, frozen=True):
    """A variable of the environment of a run; null if the run removes it, *** for a secret."""

    name: str
    value: str | None


class RunEnvironment(Document, frozen=True, kw_only=True):
    """The branch of a run, its checks, and the environment of its programs."""

    branch: str
    checks: list[str]
    variables: list[RunVariable]
    warnings: list[str]


class RunResult(Result, frozen=True, kw_only=True):
    """A run after this command, and the exit code of this command.

    `lines` are the sentences for people. They go to stderr beside a command, whose stdout is that
    of this process.
    """

    document: RunDocument
    lines: Sequence[str] = ()
    code: int = 0
    beside_command: bool = False

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return self.code


class RunList(Result, frozen=True, kw_only=True):
    """All runs."""

    document: RunDocuments
    runs: Sequence[PipelineRun]


class ShownRun(Result, frozen=True, kw_only=True):
    """One run in full."""

    document: RunDocument
    run: PipelineRun

    @property
    def lines(self) -> Iterable[str]:
        """The lines that people see."""
        return lines_of(self.run)


class ShownEnvironment(Result, frozen=True, kw_only=True):
    """The environment of a run; with `is_plan`, its branch and checks are shown, too."""

    document: RunEnvironment
    is_plan: bool = False

    @property
    def lines(self) -> Iterable[str]:
        """The lines that people see."""
        if self.is_plan:
            yield f"branch: {self.document.branch}"
            yield from (f"check:  {check}" for check in self.document.checks)
        for variable in self.document.variables:
            value = "(removed)" if variable.value is None else variable.value
            yield f"{variable.name}={value}"

    @property
    def notes(self) -> Sequence[str]:
        """What the programs may not reach."""
        return self.document.warnings


def run_rows(runs: Iterable[PipelineRun]) -> Iterable[Sequence[str]]:
    """Yields the rows of the table of runs."""
    for run in runs:
        yield (
            run.id,
            run.state,
            run.stage if run.state in (RunState.RUNNING, RunState.FAILED) else "",
            run.target,
            f"{_time(run.began):%Y-%m-%d %H:%M}",
            "" if run.has_ended else f"{_time(run.expires):%Y-%m-%d}",
            short_hash(run.result or run.head),
            " ".join(run.command),
        )


def lines_of(run: PipelineRun) -> Iterable[str]:
    """Yields the lines about one run."""
    yield f"run {run.id}"
    yield f"state:   {run.state}" + (f" ({run.stage})" if not run.has_ended else "")
    yield f"branch:  {run.branch}, from {run.target} at {short_hash(run.base)}"
    if run.key:
        yield f"key:     {run.key}"
    if run.command:
        yield f"command: {' '.join(run.command)}"
    yield f"by:      {run.who or 'unknown'} on {run.host}" + (
        f", code at {short_hash(run.code)}" if run.code else ""
    )
    yield f"began:   {_time(run.began):%Y-%m-%d %H:%M:%S} UTC"
    if run.ended is not None:
        yield f"ended:   {_time(run.ended):%Y-%m-%d %H:%M:%S} UTC"
    if run.head:
        yield f"head:    {short_hash(run.head)}"
    if run.result:
        yield f"result:  {short_hash(run.result)} on {run.target}" + (
            f", tag {run.tag}" if run.tag else ""
        )
    if run.reason:
        yield f"reason:  {run.reason}"
    if not run.has_ended:
        yield f"expires: {_time(run.expires):%Y-%m-%d %H:%M:%S} UTC"
    for result in run.results:
        yield f"{'passed' if result.passed else 'failed'}   {result.check}"
        yield from (f"         {line}" for line in result.output.splitlines())


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
