"""`nessie store maintain`."""

from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.errors import InvalidInput
from nessie_cli.model import MaintenanceReport
from nessie_cli.model.durations import parse_duration
from nessie_cli.render.text import counted, human_size
from nessie_cli.repository.store_repository import require_store
from nessie_cli.wire.record import INLINE

EXAMPLES = (
    "nessie store maintain --dry-run",
    "nessie store maintain --grace 6h",
    "nessie store maintain --full",
)


class Options(Struct, frozen=True, kw_only=True):
    """Delete old unreachable objects, expired reflog entries, and expired request ids.

    Request ids are used to detect repeated writes. Other commands can read and write the store
    during the maintenance. Reflog entries expire after reflog-expiry (90d), and request ids after
    request-expiry (7d) or reflog-expiry, whichever is shorter; both are settings of the repository.
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


class Maintenance(Result, frozen=True):
    """The result of `nessie store maintain`, or the expected result in a dry run."""

    report: Annotated[MaintenanceReport, INLINE]


def run(options: Options, app: Invocation) -> Maintenance:
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
        report = store.maintain(grace=grace, dry_run=options.dry_run, full=options.full)
    return Maintenance(report)


def show(result: Maintenance, output: Output) -> None:
    """Prints what was deleted and kept, and the size of the store."""
    report = result.report
    would = "would be " if report.dry_run else ""
    entries = counted(report.moves, "reflog entry", "reflog entries")
    kinds = ", ".join(counted(found.objects, kind) for kind, found in report.reclaimed.items())
    reclaimed = human_size(sum(found.size for found in report.reclaimed.values()))
    output.say(f"{would}expired: {entries}, {counted(report.requests, 'request id')}")
    output.say(f"{would}deleted: {kinds} ({reclaimed})")
    output.say(f"kept: {counted(report.kept, 'object')}")
    output.say(f"size: {human_size(report.size_after)}, before: {human_size(report.size_before)}")
    if report.free:
        output.say(
            f"free inside the store: {human_size(report.free)}; `nessie store maintain --full`"
            " returns them to the file system"
        )
