"""`nessie gc mark`."""

import shutil
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nessie_cli.cli.collecting import RunsFolder, Worker, clock, finish, runs
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import Engine, EngineOption, chosen
from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.gc.run import Settings

EXAMPLES = (
    "nessie gc mark --default-cutoff P30D",
    "nessie gc mark --cutoff 'main=P90D' --cutoff 'dev/.*=10' --default-cutoff NONE",
    "nessie gc mark --resume 20260131T120000Z",
)

Cutoffs = Annotated[
    list[str] | None,
    typer.Option(
        "--cutoff",
        metavar="PATTERN=POLICY",
        help="What stays of references whose whole name fits a regular expression; repeatable, the first that fits counts.",
        show_default=False,
    ),
]
DefaultCutoff = Annotated[
    str | None,
    typer.Option(
        "--default-cutoff",
        metavar="POLICY",
        help="What stays of all other references: NONE (everything), a number of commits, a duration (P30D, 12h) or an instant; "
        "else what the repository's own configuration says, else NONE.",
        show_default=False,
    ),
]
ReferenceTime = Annotated[
    str | None, typer.Option("--reference-time", metavar="TIME", help="The time that durations count back from; else now.", show_default=False)
]
Catalog = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="NAME",
        help="The catalog of PyIceberg's configuration that has the properties (endpoints, credentials) of the file systems.",
        show_default=False,
    ),
]
Snapshots = Annotated[
    str,
    typer.Option("--snapshots", metavar="WHICH", help="Of a live table: listed (every snapshot in its metadata stays) or referenced (one)."),
]
Resume = Annotated[str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.", show_default=False)]


def gc_mark(
    ctx: typer.Context,
    *,
    cutoffs: Cutoffs = None,
    default_cutoff: DefaultCutoff = None,
    reference_time: ReferenceTime = None,
    snapshots: Snapshots = "listed",
    catalog: Catalog = None,
    engine: EngineOption = None,
    resume: Resume = None,
    runs_folder: RunsFolder = None,
) -> None:
    """Begin a run: find every table file that a live commit can reach.

    The HEAD of each reference is always live, and so is each commit that `nessie undo` can bring back (setting reflog-expiry, 90 days);
    cut-off policies say how much of the history behind them is. What is staged or stashed in this workspace is live as well. Nothing is
    changed. Exits with 8 if a content could not be read: what belongs to it is left alone.
    """
    call = Invocation.of(ctx)
    asked_anew = snapshots != "listed" or any(given is not None for given in (cutoffs, default_cutoff, reference_time, catalog))
    if resume is not None and asked_anew:
        raise InvalidInput("--resume goes on by the settings of the run; --cutoff and its like begin another run")
    from nessie_cli.cli.heard import heard
    from nessie_cli.gc import phases

    folder = runs(call, runs_folder)
    if resume is not None:
        run = folder.open(resume)
    else:
        asked = Asked(cutoffs, default_cutoff, reference_time, snapshots, catalog, chosen(engine))
        run = folder.new(_settings(call, asked), call.now)
    try:
        with run.changing(), heard(call, "marking") as tell:
            phases.mark(run, Worker(call, run, engine, tell).mark, clock)
    except ModuleNotFoundError:
        # The run could not even begin: a package is not installed.
        if resume is None:
            shutil.rmtree(run.folder)
        raise
    finish(call, run)


class Asked(NamedTuple):
    """What was asked for of a new run."""

    cutoffs: list[str] | None
    default_cutoff: str | None
    reference_time: str | None
    snapshots: str
    catalog: str | None
    engine: Engine


def _settings(call: Invocation, asked: Asked) -> "Settings":
    from nessie_cli.commitspec import parse_time
    from nessie_cli.gc.policies import policies, repository_defaults
    from nessie_cli.gc.run import Settings

    if asked.snapshots not in ("listed", "referenced"):
        raise InvalidInput(f"--snapshots {asked.snapshots}: must be listed or referenced")
    repository = call.repository()
    defaults = repository_defaults(repository.config())
    settings = Settings(
        store=repository.url,
        reference_time=parse_time(asked.reference_time, call.now) if asked.reference_time else call.now,
        engine=asked.engine.value,
        cutoffs=defaults.cutoffs if asked.cutoffs is None else tuple(map(_pair, asked.cutoffs)),
        default_cutoff=asked.default_cutoff or defaults.default_cutoff or "NONE",
        catalog=asked.catalog,
        snapshots=asked.snapshots,
    )
    policies(settings.default_cutoff, settings.cutoffs, settings.reference_time)
    if asked.catalog is not None:
        from nessie_cli.iceberg.filesystems import properties_of

        # No run is begun that cannot go on.
        properties_of(asked.catalog)
    return settings


def _pair(text: str) -> tuple[str, str]:
    pattern, equals, policy = text.rpartition("=")
    if not equals or not pattern:
        raise InvalidInput(f"--cutoff {text}: write PATTERN=POLICY, such as 'dev/.*=P10D'")
    return pattern, policy
