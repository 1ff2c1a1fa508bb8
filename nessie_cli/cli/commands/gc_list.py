"""`nessie gc list`."""

import typer

from nessie_cli.cli.collecting import RunsFolder, document, runs, size
from nessie_cli.cli.context import Invocation

EXAMPLES = ("nessie gc list", "nessie gc list --runs /shared/gc --json")


def gc_list(ctx: typer.Context, *, runs_folder: RunsFolder = None) -> None:
    """List the runs, the newest first: how far each is, and what was found."""
    call = Invocation.of(ctx)
    found = runs(call, runs_folder).all()
    if call.wants_json:
        call.answer_listing("runs", map(document, found))
        return
    from nessie_cli.render.spans import Column

    columns = (
        Column("RUN", "name"),
        Column("STATE"),
        Column("CREATED", "time"),
        Column("LIVE", right=True),
        Column("CANDIDATES", right=True),
        Column("BYTES", right=True),
        Column("DELETED", right=True),
    )
    rows = (
        (
            run.id,
            run.info.state.value,
            call.out.time(run.info.created),
            *(f"{run.info.counts[name]:,}" if name in run.info.counts else "" for name in ("live", "candidates")),
            size(run.info.counts["candidateBytes"]) if "candidateBytes" in run.info.counts else "",
            f"{run.info.counts['deleted']:,}" if "deleted" in run.info.counts else "",
        )
        for run in found
    )
    call.out.print_table(columns, rows)
