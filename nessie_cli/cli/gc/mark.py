"""`nessie gc mark`."""

from enum import StrEnum
from typing import Annotated

import typer

from nessie_cli.cli.app.engines import EngineOption, chosen
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.gc.results import CollectorStep, clock, finished, show_summary
from nessie_cli.cli.gc.runs import FolderOptions
from nessie_cli.cli.gc.worker import Worker, need_packages
from nessie_cli.errors import InvalidInput
from nessie_cli.gc import phases
from nessie_cli.gc.policies import policies, repository_defaults
from nessie_cli.gc.run import Run, RunSettings
from nessie_cli.iceberg.filesystems import properties_of
from nessie_cli.revisions import parse_time

EXAMPLES = (
    "nessie gc mark --default-cutoff P30D",
    "nessie gc mark --cutoff 'main=P90D' --cutoff 'dev/.*=10' --default-cutoff NONE",
    "nessie gc mark --resume 20260131T120000Z",
)


class Snapshots(StrEnum):
    """The values of `--snapshots`."""

    LISTED = "listed"
    REFERENCED = "referenced"


class Options(FolderOptions, frozen=True, kw_only=True):
    """Begin a run: find every table file that a live commit can reach.

    The newest commit of each reference is always live. So are the commits before and after each
    move of a reference within reflog-expiry (a setting, by default 90 days), which `nessie undo`
    can restore, and the contents staged or stashed in this workspace. Retention policies define how
    much older history is live. Nothing is deleted. Exits with 8 if a live content could not be
    read; its files are kept.
    """

    cutoffs: Annotated[
        list[str] | None,
        typer.Option(
            "--cutoff",
            metavar="PATTERN=POLICY",
            help="Retention policy for references whose whole name matches this regular"
            " expression. Repeatable; the first match applies. Default: all perRefCutoffPolicies of"
            " the repository's configuration. One --cutoff replaces all of them.",
        ),
    ] = None
    default_cutoff: Annotated[
        str | None,
        typer.Option(
            "--default-cutoff",
            metavar="POLICY",
            help=(
                "Retention policy for all other references: NONE (keep all commits along first"
                " parents), a number of commits, a duration (P30D, 12h) or an instant (keep the"
                " commits since then). Default: defaultCutoffPolicy of the repository's"
                " configuration, or NONE."
            ),
        ),
    ] = None
    reference_time: Annotated[
        str | None,
        typer.Option(
            "--reference-time",
            metavar="TIME",
            help="The time from which durations and reflog-expiry count back. Default: now.",
        ),
    ] = None
    snapshots: Annotated[
        Snapshots | None,
        typer.Option(
            "--snapshots",
            help="listed (default): keep all snapshots in the metadata file of a live table."
            " referenced: keep only the snapshot that the content names, and those of the table's"
            " own branches and tags.",
        ),
    ] = None
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="Read file-system properties (endpoint, credentials) from this catalog in"
            " PyIceberg's configuration.",
        ),
    ] = None
    engine: EngineOption = None
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Resume an interrupted or failed mark with the settings of its run. Cannot be"
            " combined with options for these settings. Default of --engine: NESSIE_ENGINE, or the"
            " engine of the run.",
        ),
    ] = None


def run(options: Options, app: Invocation) -> CollectorStep:
    """Marks a new run, or resumes one."""
    run = _resumed(options, app) if options.resume is not None else _new(options, app)
    with run.changing(), app.at_work("marking") as work:
        phases.mark(run, Worker(app, run, options.engine, work.report).mark, clock)
    return finished(run)


show = show_summary


def _resumed(options: Options, app: Invocation) -> Run:
    settings = (
        options.cutoffs,
        options.default_cutoff,
        options.reference_time,
        options.snapshots,
        options.catalog,
    )
    if any(setting is not None for setting in settings):
        raise InvalidInput(
            "--resume keeps the settings of the run",
            hint="omit --cutoff and the other settings, or begin a new run",
        )
    return options.runs(app).open(options.resume)


def _new(options: Options, app: Invocation) -> Run:
    """Creates a run, after all settings and packages have been checked."""
    engine = chosen(options.engine)
    repository = app.repository()
    defaults = repository_defaults(repository.config())
    cutoffs = defaults.cutoffs if options.cutoffs is None else tuple(map(_cutoff, options.cutoffs))
    settings = RunSettings(
        store=repository.url,
        reference_time=parse_time(options.reference_time, app.now)
        if options.reference_time
        else app.now,
        engine=engine.value,
        cutoffs=cutoffs,
        default_cutoff=options.default_cutoff or defaults.default_cutoff or "NONE",
        catalog=options.catalog,
        snapshots=(options.snapshots or Snapshots.LISTED).value,
    )
    policies(settings.default_cutoff, settings.cutoffs, settings.reference_time)
    properties_of(options.catalog)
    need_packages(engine)
    return options.runs(app).new(settings, app.now)


def _cutoff(text: str) -> tuple[str, str]:
    pattern, equals, policy = text.rpartition("=")
    if not equals or not pattern:
        raise InvalidInput(f"--cutoff {text}: write PATTERN=POLICY, such as 'dev/.*=P10D'")
    return pattern, policy
