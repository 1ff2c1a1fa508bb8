"""`nessie content rename`."""

from typing import Annotated

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, rename

EXAMPLES = ("nessie content rename db.orders db.sales.orders -m 'orders belong to sales'",)


def content_rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The key it has.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The key it gets.", show_default=False)],
    *,
    expected_hash: staging.ExpectedHash = None,
    message: staging.Message = None,
) -> None:
    """Stage a rename: the content leaves one key for another and keeps its content id."""
    old_key, new_key = ContentKey.parse(old), ContentKey.parse(new)

    def change(staged: StagedList, state: State) -> StagedList:
        return rename(staged, old_key, new_key, state, afresh=bool(expected_hash))

    staging.stage(Invocation.of(ctx), staging.Step(change, [old_key, new_key], message, expected_hash))
