"""`nessie gc approve`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.gc.results import CollectorStep, clock, finished, show_summary
from nessie_cli.cli.gc.runs import RunOptions
from nessie_cli.gc.apply import approve

EXAMPLES = (
    "nessie gc approve",
    "nessie gc approve 20260131T120000Z --by ann@example.org --digest 5f1c09ab",
)


class Options(RunOptions, frozen=True, kw_only=True):
    """Approve the deletion of the candidates of a run.

    The approval is valid for exactly these candidates. A new plan has to be approved again.
    """

    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="The name of the approver. Default: NESSIE_AUTHOR, the setting author, or the"
            " system's user.",
        ),
    ] = None
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest",
            metavar="DIGEST",
            help="Fail unless the digest of the candidate list begins with this (printed by"
            " `gc show`).",
        ),
    ] = None


def run(options: Options, app: Invocation) -> CollectorStep:
    """Approves the candidates."""
    refuse_empty("nessie gc approve [RUN] [--by NAME]", options.by)
    run = options.run(app)
    with run.changing():
        approve(run, options.by or app.who(), clock(), options.digest)
    return finished(run)


show = show_summary
