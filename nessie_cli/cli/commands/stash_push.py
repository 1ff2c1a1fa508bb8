"""`nessie stash push`, which `nessie stash` alone means as well."""

from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.stashing import document
from nessie_cli.cli.submission import NOTHING_STAGED, settle
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.stash import Stashed, StashFile

EXAMPLES = ("nessie stash", "nessie stash push -m 'half of the rename'")


def stash_push(
    ctx: typer.Context,
    *,
    message: Annotated[str, typer.Option("-m", "--message", metavar="MSG", help="What it is, for the list.")] = "",
) -> None:
    """Put the staged batch aside; nothing is staged then."""
    call = Invocation.of(ctx)
    workspace = call.need_workspace()
    name = call.head.name or str(call.head)
    with call.batch_file().changing() as file:
        batch, done = settle(call, file)
        if batch is None:
            what = "" if done is None else f"; the batch was committed already, as {done.reference.hash[:12]} on {done.reference.name}"
            raise InvalidInput(NOTHING_STAGED + what)
        stashed = Stashed(replace(batch, request_id=None), message, name, call.now)
        StashFile(workspace).push(stashed)
        file.write(None)
    if call.wants_json:
        call.answer(document(0, stashed))
    else:
        call.say(f"put aside: {len(stashed.batch.keys)} key{'' if len(stashed.batch.keys) == 1 else 's'}; nothing is staged")
        call.note("`nessie stash pop` stages it again")
