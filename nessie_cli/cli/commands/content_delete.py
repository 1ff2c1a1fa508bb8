"""`nessie content delete`."""

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, delete

EXAMPLES = ("nessie content delete db.orders -m 'drop orders'", "nessie content delete db.orders db.items db")


def content_delete(
    ctx: typer.Context,
    keys: staging.Keys,
    *,
    expected_hash: staging.ExpectedHash = None,
    message: staging.Message = None,
    author: staging.Author = None,
) -> None:
    """Stage the deletion of keys.

    A namespace can be deleted together with everything in it, or empty.
    """
    wanted = [ContentKey.parse(key) for key in keys]

    def change(staged: StagedList, state: State) -> StagedList:
        for key in wanted:
            staged = delete(staged, key, state, afresh=bool(expected_hash))
        return staged

    staging.stage(Invocation.of(ctx), staging.Step(change, wanted, message, expected_hash, author))
