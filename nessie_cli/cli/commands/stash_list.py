"""`nessie stash list`."""

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.stashing import document
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash list", "nessie stash list --json")


def stash_list(ctx: typer.Context) -> None:
    """List the batches that were put aside, newest first."""
    call = Invocation.of(ctx)
    found = StashFile(call.need_workspace()).read()
    if call.wants_json:
        call.answer_listing("stashes", (document(number, stashed) for number, stashed in enumerate(found)))
        return
    from nessie_cli.render.spans import Column

    columns = (Column("NO", right=True), Column("WHEN", "time"), Column("ON", "name"), Column("KEYS", right=True), Column("MESSAGE", room="cut"))
    rows = (
        (str(number), call.out.time(stashed.time), stashed.reference, str(len(stashed.batch.keys)), stashed.message)
        for number, stashed in enumerate(found)
    )
    call.out.print_table(columns, rows)
