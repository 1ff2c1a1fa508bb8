"""`nessie gc plan`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.gc.results import CollectorStep, clock, finished, show_summary
from nessie_cli.cli.gc.runs import RunEngineOption, RunOptions
from nessie_cli.cli.gc.worker import Worker
from nessie_cli.errors import InvalidInput
from nessie_cli.gc import phases
from nessie_cli.gc.policies import repository_defaults
from nessie_cli.iceberg.locations import absolute_location
from nessie_cli.model.durations import parse_duration

EXAMPLES = (
    "nessie gc plan --warehouse s3://lake/warehouse",
    (
        "nessie gc plan 20260131T120000Z --warehouse /data/warehouse --warehouse /data/archive"
        " --grace 7d"
    ),
)
DEFAULT_GRACE = 3 * 86_400
"""The default grace period in seconds."""


class Options(RunOptions, frozen=True, kw_only=True):
    """Find the candidates of a marked run: unreachable files older than the grace period.

    Run `nessie gc mark` first. Searches the locations of tables and views, including dropped ones,
    that are inside a --warehouse. Deletes nothing: `gc approve` and `gc apply` come next. A new
    plan makes an earlier approval invalid.

    Files of imported and exported tables are never candidates, because another catalog may write
    these tables. `nessie gc show` lists their locations. `nessie import --adopt KEY` ends that for
    an imported table, and `nessie tag -d exported/NAME` for all tables that only the catalog NAME
    still had: delete the tag if the catalog no longer has them.

    Verifies the store first, except the store behind a server. The exit status is 7 if the store is
    damaged, and 8 if a live content or a folder could not be read; its files are kept.
    """

    warehouses: Annotated[
        list[str] | None,
        typer.Option(
            "--warehouse",
            metavar="LOCATION",
            help="Only files below this location can become candidates. Repeatable. Required for"
            " the first plan of a run. Default of a later plan: the locations of the one before.",
        ),
    ] = None
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Keep files that changed within this time before the run began: 3d, 36h, "
            "P3D. Default: newFilesGracePeriod of the repository's garbage collector "
            "configuration (set over REST), or 3d. The grace period of an earlier plan is not"
            " used.",
        ),
    ] = None
    engine: RunEngineOption = None


def run(options: Options, app: Invocation) -> CollectorStep:
    """Plans the run."""
    run = options.run(app)
    with run.changing(), app.at_work("planning") as work:
        allowed = options.warehouses or run.info.settings.warehouse
        if not allowed:
            raise InvalidInput(
                "--warehouse is missing: it names the locations below which files may be deleted"
            )
        if not all(map(str.strip, allowed)):
            raise InvalidInput("--warehouse: the location is empty")
        worker = Worker(app, run, options.engine, work.report)
        worker.verify()
        settings = run.info.settings.with_plan(
            tuple(map(absolute_location, allowed)),
            _grace(options.grace, app),
            tuple(worker.foreign()),
        )
        phases.plan(run, worker.plan, settings, clock)
    return finished(run)


show = show_summary


def _grace(text: str | None, app: Invocation) -> int:
    """The grace period in seconds."""
    if text is not None:
        return int(parse_duration(text).total_seconds())
    grace = repository_defaults(app.repository().config()).grace
    return DEFAULT_GRACE if grace is None else grace
