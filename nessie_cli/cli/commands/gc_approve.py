"""`nessie gc approve`."""

from typing import Annotated

import typer

from nessie_cli.cli.collecting import RunName, RunsFolder, clock, finish, runs
from nessie_cli.cli.context import Invocation

EXAMPLES = ("nessie gc approve", "nessie gc approve 20260131T120000Z --by ann@example.org --digest 5f1c09ab")


def gc_approve(
    ctx: typer.Context,
    name: RunName = None,
    *,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approves; else NESSIE_AUTHOR or the user.", show_default=False)] = None,
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="DIGEST", help="Only if the candidates have this digest, as `gc show` tells it.", show_default=False),
    ] = None,
    runs_folder: RunsFolder = None,
) -> None:
    """Say that the candidates of a run may be deleted.

    It counts for exactly these: another plan has to be approved again.
    """
    call = Invocation.of(ctx)
    from nessie_cli.gc.applying import approve

    run = runs(call, runs_folder).open(name)
    with run.changing():
        approve(run, by or call.who(), clock(), digest)
    finish(call, run)
