"""`nessie content delete`."""

from typing import Annotated

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.content.keys import KeysArgument
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.key_arguments import existing_keys
from nessie_cli.cli.staging.options import StagingOptions
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.model import Delete
from nessie_cli.workspace.staging import StagedList, State, delete_all, proposed, renames

EXAMPLES = (
    "nessie content delete db.orders -m 'drop orders'",
    "nessie content delete db.orders db.items db",
    "nessie content delete 'db.sales.*' --author Ada -m 'drop all of sales'",
)


class Options(StagingOptions, frozen=True, kw_only=True):
    """Stage the deletion of keys.

    A namespace can be deleted only if nothing is left below it: delete its contents in the same
    commit, or earlier.
    """

    keys: Annotated[list[str], KeysArgument]


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the deletions."""
    keys = existing_keys(app, options.keys, options.expected_hash)

    def change(staged: StagedList, state: State) -> StagedList:
        # A deletion that an earlier, failed commit left staged stays, so -m can be repeated.
        deleted = {item.key for item in staged if isinstance(item.operation, Delete)}
        deleted -= {*renames(staged), *(item.key for item in staged if proposed(item))}
        rest = [key for key in keys if key not in deleted or options.expected_hash]
        return delete_all(staged, rest, state, discard_staged=bool(options.expected_hash))

    return stage(app, Step(change, keys, options.expected_hash), options.message, options.author)


show = print_step
