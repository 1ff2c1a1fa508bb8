"""`nessie stash pop` and `nessie stash apply`."""

import typer
from msgspec.structs import replace

from nessie_cli.cli.batch_view import changes_of, print_changes
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.stashing import Number, document
from nessie_cli.cli.submission import settle
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash pop", "nessie stash apply 1")


def stash_pop(ctx: typer.Context, number: Number = 0) -> None:
    """Stage a batch that was put aside, and forget that it was."""
    _stage(Invocation.of(ctx), number, forget=True)


def stash_apply(ctx: typer.Context, number: Number = 0) -> None:
    """Stage a batch that was put aside, and keep it aside as well."""
    _stage(Invocation.of(ctx), number, forget=False)


def _stage(call: Invocation, number: int, *, forget: bool) -> None:
    workspace = call.need_workspace()
    stashes = StashFile(workspace)
    with call.batch_file().changing() as file:
        stashed = stashes.get(number)
        before = file.read()
        if before is not None and before.request_id is not None:
            before, _ = settle(call, file)
        if before is not None:
            raise InvalidInput("a batch is staged already; `nessie commit`, `nessie stash` or `nessie reset` first")
        batch = stashed.batch
        store, branch = call.store.name(), call.reference_name()
        if batch.store not in (None, store):
            raise InvalidInput(f"that batch is for the store {batch.store}, not for {store}; name it with --store")
        file.write(replace(batch, branch=branch, store=store))
        if forget:
            stashes.drop(number)
    if call.wants_json:
        call.answer(document(number, stashed))
    else:
        print_changes(call, changes_of(batch.staged))
        if batch.branch not in (None, branch):
            call.note(f"it was staged for {batch.branch}; now it is for {branch}")
        call.note("`nessie status` tells what would conflict")
