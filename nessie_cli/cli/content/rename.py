"""`nessie content rename`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.options import StagingOptions
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, rename

EXAMPLES = ("nessie content rename db.orders db.sales.orders -m 'orders belong to sales'",)


class Options(StagingOptions, frozen=True, kw_only=True):
    """Stage a rename: move a content to another key.

    The content id is kept. Fails if NEW exists. The parents of NEW, such as db.sales of
    db.sales.orders, must be namespaces that exist or that the same commit creates.
    """

    old: Annotated[str, typer.Argument(metavar="OLD", help="The current key.")]
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new key.")]


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the rename."""
    old, new = ContentKey.parse(options.old), ContentKey.parse(options.new)

    def change(staged: StagedList, state: State) -> StagedList:
        return rename(staged, old, new, state, discard_staged=bool(options.expected_hash))

    return stage(
        app, Step(change, (old, new), options.expected_hash), options.message, options.author
    )


show = print_step
