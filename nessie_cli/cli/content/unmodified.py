"""`nessie content unmodified`."""

from typing import Annotated

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.content.keys import KeysArgument
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.key_arguments import existing_keys
from nessie_cli.cli.staging.options import StagingOptions
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.workspace.staging import StagedList, State, unmodified

EXAMPLES = (
    "nessie content unmodified db.rates",
    "nessie content put db.orders --snapshot-id 43",
    "nessie commit -m 'orders in euros'",
)


class Options(StagingOptions, frozen=True, kw_only=True):
    """Stage a check that keys are unmodified when the batch is committed.

    Use it for tables that the commit was computed from but does not write. The commit fails if a
    key then differs from its state at the time of staging, or at --expected-hash. Staging a change
    of a key replaces its check. Without --expected-hash, a check that is already staged stays as it
    is, and the command fails if a change of a key is already staged.
    """

    keys: Annotated[list[str], KeysArgument]


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the checks."""
    keys = existing_keys(app, options.keys, options.expected_hash)

    def change(staged: StagedList, state: State) -> StagedList:
        for key in keys:
            staged = unmodified(staged, key, state, discard_staged=bool(options.expected_hash))
        return staged

    return stage(app, Step(change, keys, options.expected_hash), options.message, options.author)


show = print_step
