"""`nessie content unmodified`."""

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, unmodified

EXAMPLES = ("nessie content unmodified db.rates", "nessie content unmodified db.rates db.customers")


def content_unmodified(
    ctx: typer.Context, keys: staging.Keys, *, expected_hash: staging.ExpectedHash = None, message: staging.Message = None
) -> None:
    """Stage the demand that keys are still as they are now when the batch is committed."""
    wanted = [ContentKey.parse(key) for key in keys]

    def change(staged: StagedList, state: State) -> StagedList:
        for key in wanted:
            staged = unmodified(staged, key, state, afresh=bool(expected_hash))
        return staged

    staging.stage(Invocation.of(ctx), staging.Step(change, wanted, message, expected_hash))
