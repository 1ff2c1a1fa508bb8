"""`nessie gc plan`."""

from typing import Annotated

import typer

from nessie_cli.cli.collecting import RunName, RunsFolder, Worker, clock, finish, runs
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import EngineOption
from nessie_cli.errors import InvalidInput

EXAMPLES = (
    "nessie gc plan --warehouse s3://lake/warehouse",
    "nessie gc plan 20260131T120000Z --warehouse /data/warehouse --warehouse /data/archive --grace 7d",
)

Warehouses = Annotated[
    list[str] | None,
    typer.Option(
        "--warehouse", metavar="LOCATION", help="A location that files may be deleted below, whatever tables say; repeatable.", show_default=False
    ),
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="DURATION",
        help="How old a file has to be at least: 3d, 36h, P3D; else what the repository's own configuration says, else 3d.",
        show_default=False,
    ),
]
DEFAULT_GRACE = 3 * 86_400


def gc_plan(
    ctx: typer.Context,
    name: RunName = None,
    *,
    warehouses: Warehouses = None,
    grace: Grace = None,
    engine: EngineOption = None,
    runs_folder: RunsFolder = None,
) -> None:
    """List the files below the locations of all tables, and find those to be deleted: neither live nor too young.

    Verifies the store first, and exits with 7 if it is damaged. Nothing is deleted. An approval that there was counts no more. Exits with 8 if
    something could not be listed or read: it is left alone.
    """
    call = Invocation.of(ctx)
    from nessie_cli.cli.heard import heard
    from nessie_cli.gc import phases

    run = runs(call, runs_folder).open(name)
    with run.changing(), heard(call, "planning") as tell:
        allowed = tuple(warehouses or run.info.settings.warehouse)
        if not allowed:
            raise InvalidInput("below which locations may files be deleted? name them with --warehouse; a table's own metadata is not trusted")
        worker = Worker(call, run, engine, tell)
        worker.verify()
        settings = run.info.settings.with_plan(tuple(map(_absolute, allowed)), _grace(call, grace))
        phases.plan(run, worker.plan, settings, clock)
    finish(call, run)


def _absolute(location: str) -> str:
    from nessie_cli.iceberg.files import absolute_location

    return absolute_location(location)


def _grace(call: Invocation, text: str | None) -> int:
    from nessie_cli.gc.policies import repository_defaults
    from nessie_cli.model.durations import parse_duration

    if text is not None:
        return int(parse_duration(text).total_seconds())
    found = repository_defaults(call.repository().config()).grace
    return DEFAULT_GRACE if found is None else found
