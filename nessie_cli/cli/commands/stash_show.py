"""`nessie stash show`."""

import typer

from nessie_cli.cli.batch_view import changes_of, print_changes
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.stashing import Number, document
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash show", "nessie stash show 1 --json")


def stash_show(ctx: typer.Context, number: Number = 0) -> None:
    """Show the operations of a batch that was put aside."""
    call = Invocation.of(ctx)
    stashed = StashFile(call.need_workspace()).get(number)
    if call.wants_json:
        call.answer(document(number, stashed))
    else:
        print_changes(call, changes_of(stashed.batch.staged))
