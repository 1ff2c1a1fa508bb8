"""`nessie store maintain`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.model import MaintenanceReport, Reclaimed
from nessie_cli.model.durations import parse_duration
from nessie_cli.model.runs import PipelineRun
from nessie_cli.render.text import counted, human_size
from nessie_cli.repository.base import Repository
from nessie_cli.repository.store_repository import require_store
from nessie_cli.runs.lifecycle import expire_branches
from nessie_cli.wire.scalars import Count

EXAMPLES = (
    "nessie store maintain --dry-run",
    "nessie store maintain --grace 6h",
    "nessie store maintain --full",
)


class Options(Struct, frozen=True, kw_only=True):
    """Delete old unreachable objects, and expired reflog entries, request ids and runs.

    Request ids are used to detect repeated writes. Other commands can read and write the store
    during the maintenance. Reflog entries expire after reflog-expiry (90d), request ids after
    request-expiry (7d) or reflog-expiry, whichever is shorter, and runs with their branches after
    run-expiry (14d). These are settings of the repository.
    Commits in the reflog are kept, so `nessie undo` can restore them until their entries expire.
    Needs direct access to the store.
    """

    grace: Annotated[
        str,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Keep objects that were written within this time (2h or longer). Choose a longer"
            " time than the longest commit takes.",
        ),
    ] = "1d"
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")
    ] = False
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Also rewrite the store to return free space to the file system. Writers wait"
            " meanwhile; on PostgreSQL, readers too.",
        ),
    ] = False


class ExpiredRows(Struct):
    """How many entries of the reflog, request ids and runs have expired."""

    reflog: Count
    requests: Count
    runs: Count


class DeletedObjects(Struct):
    """How many objects of one kind were deleted, and the bytes that they took."""

    objects: Count
    bytes: Count

    @classmethod
    def of(cls, reclaimed: Reclaimed) -> Self:
        """Returns the struct of deleted objects."""
        return cls(reclaimed.objects, reclaimed.size)


class DeletedByKind(Struct):
    """Deleted objects by kind."""

    commits: DeletedObjects
    nodes: DeletedObjects
    values: DeletedObjects

    @classmethod
    def of(cls, reclaimed: Mapping[str, Reclaimed]) -> Self:
        """Returns the struct of deleted objects by kind."""
        return cls(*(DeletedObjects.of(reclaimed[kind]) for kind in ("commit", "node", "value")))


class StoreSizes(Struct):
    """Bytes of the store on disk before and after.

    `free` bytes inside it are used again; null if that is not known.
    """

    before: Count
    after: Count
    free: Count | None


class Maintenance(Document, frozen=True):
    """The result of `nessie store maintain`, or the expected result in a dry run."""

    dry_run: bool
    expired: ExpiredRows
    deleted: DeletedByKind
    kept: Count
    size: StoreSizes

    @classmethod
    def of(cls, report: MaintenanceReport, runs: int = 0) -> Self:
        """Returns the document of a report, and of a number of expired runs."""
        return cls(
            report.dry_run,
            ExpiredRows(report.moves, report.requests, runs),
            DeletedByKind.of(report.reclaimed),
            report.kept,
            StoreSizes(report.size_before, report.size_after, report.free),
        )


class MaintenanceResult(Result, frozen=True):
    """The report of the maintenance, and why expired runs were left."""

    document: Maintenance
    report: MaintenanceReport
    notes_about_runs: Sequence[str] = ()

    @property
    def notes(self) -> Sequence[str]:
        """The expired runs that could not be deleted."""
        return self.notes_about_runs


def run(options: Options, app: Invocation) -> MaintenanceResult:
    """Maintains the store."""
    if options.full and options.dry_run:
        raise InvalidInput(
            "--full and --dry-run cannot be used together: --full rewrites the store"
        )
    grace = parse_duration(options.grace)
    with app.at_work("maintaining the store"):
        repository = app.repository()
        store = require_store(
            repository,
            f"{repository.url}: maintenance needs the store itself; run it where the store is",
        )
        runs, notes = _expired_runs(repository, dry_run=options.dry_run)
        report = store.maintain(grace=grace, dry_run=options.dry_run, full=options.full)
    return MaintenanceResult(Maintenance.of(report, len(runs)), report, notes)


def _expired_runs(
    repository: Repository, *, dry_run: bool
) -> tuple[Sequence[PipelineRun], Sequence[str]]:
    """Deletes expired runs. Returns them, and why others were left."""
    notes: list[str] = []

    def report(run: PipelineRun, error: NessieError) -> None:
        notes.append(f"run {run.id} has expired, but {run.branch} was not deleted: {error.message}")

    return expire_branches(repository, dry_run=dry_run, report=report), notes


def show(result: MaintenanceResult, output: Output) -> None:
    """Prints what was deleted and kept, and the size of the store."""
    report = result.report
    would = "would be " if report.dry_run else ""
    entries = counted(report.moves, "reflog entry", "reflog entries")
    kinds = ", ".join(counted(total.objects, kind) for kind, total in report.reclaimed.items())
    reclaimed = human_size(sum(total.size for total in report.reclaimed.values()))
    requests = counted(report.requests, "request id")
    runs = counted(result.document.expired.runs, "run")
    output.say(f"{would}expired: {entries}, {requests}, {runs}")
    output.say(f"{would}deleted: {kinds} ({reclaimed})")
    output.say(f"kept: {counted(report.kept, 'object')}")
    output.say(f"size: {human_size(report.size_after)}, before: {human_size(report.size_before)}")
    if report.free:
        output.say(
            f"free inside the store: {human_size(report.free)}; `nessie store maintain --full`"
            " returns them to the file system"
        )
