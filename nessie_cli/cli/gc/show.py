"""`nessie gc show`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from msgspec import Meta, Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.gc.results import CollectorRun
from nessie_cli.cli.gc.runs import RunOptions
from nessie_cli.errors import InvalidInput
from nessie_cli.gc.run import Run
from nessie_cli.render.spans import Column
from nessie_cli.render.text import counted, human_size
from nessie_cli.wire.scalars import Count, Instant, instant

EXAMPLES = (
    "nessie gc show",
    "nessie gc show 20260131T120000Z --candidates",
    "nessie gc show --kept --jsonl",
)
_BASES = (Column("FILES", right=True), Column("SIZE", right=True), Column("BELOW", "key", "fold"))
_CANDIDATES = (
    Column("BYTES", right=True),
    Column("MODIFIED", "time"),
    Column("LOCATION", "key", "fold"),
)
_KEPT = (Column("OUTCOME"), Column("LOCATION", "key", "fold"), Column("WHY", room="fold"))
_SECONDS_PER_DAY = 86_400
_SECONDS_PER_HOUR = 3_600


class Options(RunOptions, frozen=True, kw_only=True):
    """Show a run: its settings, counts, candidates by location, and unreadable contents."""

    candidates: Annotated[
        bool,
        typer.Option(
            "--candidates", help="List the candidates for deletion. Requires a planned run."
        ),
    ] = False
    kept: Annotated[
        bool,
        typer.Option(
            "--kept",
            help="List the candidates that `gc apply` did not delete, with the reason. Requires an"
            " applied run.",
        ),
    ] = False


class CollectedBase(Struct, rename="camel"):
    """The number of candidates below a location, and their bytes."""

    base: str
    files: Count
    bytes: Count


class CollectorFinding(Struct, rename="camel"):
    """A content, file or folder that could not be read or listed, or was skipped."""

    kind: str
    content_id: str | None
    key: str | None
    reference: str | None
    location: str | None
    base: str | None
    message: str


class ShownCollectorRun(CollectorRun, frozen=True, kw_only=True):
    """A run, its candidates by location, and what could not be read."""

    bases: list[CollectedBase]
    findings: list[CollectorFinding]


class ShownRun(Result, frozen=True):
    """A run, and its document."""

    document: ShownCollectorRun
    run: Run


class CollectorCandidate(Struct, rename="camel"):
    """A candidate for deletion, as it was when it was listed."""

    location: str
    bytes: Count
    modified: Instant
    base: str


class CollectorCandidates(Listing, frozen=True, kw_only=True):
    """The candidates, in the order of deletion."""

    listing = "candidates"
    candidates: Records[CollectorCandidate]


class CollectorCandidatesResult(Result, frozen=True):
    """The candidates, as the rows of their dataset."""

    document: CollectorCandidates
    rows: Iterable[Mapping[str, Any]]


Outcome = Annotated[
    str,
    Meta(extra_json_schema={"enum": ["FAILED", "CHANGED", "OUTSIDE", "LIVE", "PROTECTED"]}),
]


class KeptCandidate(Struct, rename="camel"):
    """A file that was not deleted when the run was applied, and why."""

    location: str
    outcome: Outcome
    message: str


class KeptCandidates(Listing, frozen=True, kw_only=True):
    """The files that were not deleted when the run was applied."""

    listing = "kept"
    kept: Records[KeptCandidate]


def run(options: Options, app: Invocation) -> ShownRun | CollectorCandidatesResult | KeptCandidates:
    """Reads the run, its candidates, or those that were kept."""
    if options.candidates and options.kept:
        raise InvalidInput("--candidates and --kept cannot be used together")
    run = options.run(app)
    if options.candidates:
        _need(run, "candidates", "it has not been planned")
        rows = run.dataset("candidates").records(["location", "size", "modified", "base"])
        document = CollectorCandidates(candidates=map(_candidate, rows))
        return CollectorCandidatesResult(document, rows)
    if options.kept:
        _need(run, "kept", "it has not been applied")
        return KeptCandidates(kept=(KeptCandidate(**row) for row in run.dataset("kept").records()))
    shown = ShownCollectorRun.of(run, bases=_bases(run), findings=list(_findings(run)))
    return ShownRun(shown, run)


def show(result: Result, output: Output) -> None:
    """Prints a description of the run, or a table of files."""
    if isinstance(result, CollectorCandidatesResult):
        rows = (
            [str(row["size"]), output.out.time(row["modified"]), row["location"]]
            for row in result.rows
        )
        output.out.print_table(_CANDIDATES, rows, paged=True)
    elif isinstance(result, KeptCandidates):
        rows = (
            [candidate.outcome, candidate.location, candidate.message] for candidate in result.kept
        )
        output.out.print_table(_KEPT, rows, paged=True)
    elif isinstance(result, ShownRun):
        _show_run(result, output)


def _need(run: Run, dataset: str, reason: str) -> None:
    """Raises `InvalidInput` if the run does not have a dataset yet."""
    if not run.dataset(dataset).exists:
        hint = CollectorRun.of(run).next_step
        raise InvalidInput(f"run {run.id} is {run.info.state}: {reason}", hint=hint or "")


def _candidate(row: Mapping[str, Any]) -> CollectorCandidate:
    return CollectorCandidate(row["location"], row["size"], instant(row["modified"]), row["base"])


def _bases(run: Run) -> list[CollectedBase]:
    """Returns the candidates by location, the largest first."""
    if not run.dataset("candidates").exists:
        return []
    sums: dict[str, list[int]] = {}
    for batch in run.dataset("candidates").batches(["base", "size"]):
        for base, size in zip(
            batch.column("base").to_pylist(), batch.column("size").to_pylist(), strict=True
        ):
            sum_ = sums.setdefault(base, [0, 0])
            sum_[0] += 1
            sum_[1] += size
    bases = [CollectedBase(base, files, size) for base, (files, size) in sums.items()]
    return sorted(bases, key=lambda base: (-base.bytes, base.base))


def _findings(run: Run) -> Iterator[CollectorFinding]:
    for name in ("findings", "plan-findings"):
        if run.dataset(name).exists:
            for row in run.dataset(name).records():
                yield CollectorFinding(**row)


def _show_run(shown: ShownRun, output: Output) -> None:
    result = shown.document
    output.out.print_text(result.summary)
    for label, text in _properties(shown, output):
        output.out.print_line(f" {label:16}{text}")
    if result.bases:
        rows = ((f"{base.files:,}", human_size(base.bytes), base.base) for base in result.bases)
        output.out.print_table(_BASES, rows)
    for finding in result.findings:
        place = finding.key or finding.base or finding.location or ""
        message = (
            finding.message if finding.message.startswith(place) else f"{place}: {finding.message}"
        )
        output.out.print_text(f"{finding.kind.lower()}: {message}")
    if result.next_step:
        output.note(f"next: {result.next_step}")


def _properties(shown: ShownRun, output: Output) -> Iterator[tuple[str, str]]:
    """Yields the labels and texts that describe a run."""
    result = shown.document
    time, counts = output.out.time, result.counts
    yield "store", result.store
    cutoffs = [f"{cutoff.pattern}={cutoff.policy}" for cutoff in result.cutoffs]
    yield "retention", ", ".join([*cutoffs, f"all others={result.default_cutoff}"])
    yield "durations from", result.reference_time
    yield "snapshots", result.snapshots
    yield "engine", result.engine
    if result.catalog:
        yield "catalog", result.catalog
    yield "references", f"{len(result.references):,}"
    if result.references:
        has_reflog = "positions" in counts
        yield (
            "reflog",
            counted(counts["positions"], "position")
            if has_reflog
            else "none: the server keeps none",
        )
    if result.warehouse:
        yield "warehouse", ", ".join(result.warehouse)
        young = counted(counts.get("young", 0), "file")
        yield (
            "grace",
            f"{_period(result.grace_seconds)}; {young} changed within it",
        )
    if result.digest:
        yield "digest", result.digest
    if approval := shown.run.approval():
        is_valid = approval.digest == result.digest
        yield (
            "approved by",
            f"{approval.by}, {time(approval.time)}{'' if is_valid else ', for other candidates'}",
        )
    if result.failure:
        yield "error", result.failure


def _period(seconds: int) -> str:
    if seconds < _SECONDS_PER_DAY:
        return f"{seconds / _SECONDS_PER_HOUR:g} hours"
    return f"{seconds / _SECONDS_PER_DAY:g} days"
