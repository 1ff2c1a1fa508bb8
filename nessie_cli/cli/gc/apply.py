"""`nessie gc apply`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.gc.results import CollectorRun, CollectorStep, clock, finished, show_summary
from nessie_cli.cli.gc.runs import RunEngineOption, RunOptions
from nessie_cli.cli.gc.worker import Worker
from nessie_cli.gc.apply import apply
from nessie_cli.gc.run import RunState
from nessie_cli.render.text import counted, human_size
from nessie_cli.wire.scalars import Count

EXAMPLES = ("nessie gc apply", "nessie gc apply 20260131T120000Z --dry-run --json")


class Options(RunOptions, frozen=True, kw_only=True):
    """Delete those candidates of a run that are still unreachable.

    Run `nessie gc approve` first. Verifies the store and marks again before deleting. A store
    behind a server is not verified: run `nessie fsck` on the server's store first. Keeps
    candidates that have become reachable, have changed, belong to an unreadable content, or are
    outside the --warehouse locations of the plan. Checks the references before each batch of files.
    If interrupted, run the same command again to resume.

    The exit status is 5 if a candidate became reachable during the deletion, 6 without a valid
    approval, 7 if the store is damaged, and 8 if some files could not be deleted.
    """

    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Mark again, and count the files that would be deleted. Delete nothing.",
        ),
    ] = False
    engine: RunEngineOption = None


class CollectorRehearsal(CollectorRun, frozen=True, kw_only=True):
    """A dry run: the number of candidates for each outcome, and `deletedBytes`."""

    would_be: dict[str, Count]


def run(options: Options, app: Invocation) -> CollectorStep | CollectorRehearsal:
    """Deletes the approved files, or counts them in a dry run."""
    run = options.run(app)
    with run.changing(), app.at_work("marking again") as work:
        if run.info.state is RunState.APPLIED and not options.dry_run:
            app.output.note(f"run {run.id} has been applied already")
            return finished(run)
        worker = Worker(app, run, options.engine, work.report)
        applied = apply(
            run,
            worker,
            worker.properties,
            clock,
            lambda done, total: work.report("deleting", done, total),
            dry_run=options.dry_run,
        )
    return (
        CollectorRehearsal.of(run, would_be=dict(applied.counts))
        if options.dry_run
        else finished(run)
    )


def show(result: CollectorStep | CollectorRehearsal, output: Output) -> None:
    """Prints what was deleted, or would be deleted."""
    if not isinstance(result, CollectorRehearsal):
        show_summary(result, output)
        return
    counts = result.would_be
    remaining = sum(
        count for name, count in counts.items() if name not in ("deleted", "deletedBytes")
    )
    deleted = (
        f"{counted(counts['deleted'], 'file')} would be deleted"
        f" ({human_size(counts['deletedBytes'])})"
    )
    output.say(f"run {result.run}: {deleted}, {remaining:,} would be kept")
