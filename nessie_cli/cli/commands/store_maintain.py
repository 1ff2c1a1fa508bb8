"""`nessie store maintain`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.store_copies import counted
from nessie_cli.model import MaintenanceReport
from nessie_cli.wire.facts import maintenance

EXAMPLES = ("nessie store maintain --dry-run", "nessie store maintain --grace 6h", "nessie store maintain --full")

Grace = Annotated[
    str,
    typer.Option("--grace", metavar="DURATION", help="Keep objects written within this time. It must be longer than the longest load."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")]
Full = Annotated[bool, typer.Option("--full", help="Rewrite the store and return free space to the file system. Writers wait meanwhile.")]


def store_maintain(ctx: typer.Context, *, grace: Grace = "1d", dry_run: DryRun = False, full: Full = False) -> None:
    """Delete unreachable objects, expired reflog entries and request ids.

    Others can read and write the store meanwhile. The settings reflog-expiry (90d) and request-expiry (7d) of the
    repository say when entries expire. Objects that the reflog needs are kept, so `nessie undo` works until then.
    """
    from nessie_cli.model.durations import parse_duration

    call = Invocation.of(ctx)
    with call.at_work("maintaining the store"):
        report = call.repository().maintain(grace=parse_duration(grace), dry_run=dry_run, full=full)
    if call.wants_json:
        call.answer(maintenance(report))
    else:
        for line in _lines(report):
            call.say(line)


def _lines(report: MaintenanceReport) -> list[str]:
    from nessie_cli.render.stats import human_size

    would = "would be " if report.dry_run else ""
    kinds = ", ".join(counted(found.objects, kind) for kind, found in report.reclaimed.items())
    reclaimed = human_size(sum(found.size for found in report.reclaimed.values()))
    lines = [
        f"{would}expired: {counted(report.moves, 'reflog entry', 'reflog entries')}, {counted(report.requests, 'request id')}",
        f"{would}deleted: {kinds} ({reclaimed})",
        f"kept: {counted(report.kept, 'object')}",
        f"size: {human_size(report.size_after)}, before: {human_size(report.size_before)}",
    ]
    if report.free:
        lines.append(f"free inside the store: {human_size(report.free)}; `nessie store maintain --full` returns them to the file system")
    return lines
