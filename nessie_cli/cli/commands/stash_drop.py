"""`nessie stash drop`."""

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.stashing import Number, document
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash drop", "nessie stash drop 2")


def stash_drop(ctx: typer.Context, number: Number = 0) -> None:
    """Forget a batch that was put aside."""
    call = Invocation.of(ctx)
    workspace = call.need_workspace()
    with call.batch_file().changing():
        dropped = StashFile(workspace).drop(number)
    if call.wants_json:
        call.answer(document(number, dropped))
    else:
        call.say(f"forgotten: {dropped.message or f'batch of {len(dropped.batch.keys)} keys'}")
