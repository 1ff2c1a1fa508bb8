"""`nessie stash show`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import changes_of, list_changes
from nessie_cli.cli.staging.stashes import NumberOptions, StashResult
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash show", "nessie stash show 1 --json")


class Options(NumberOptions, frozen=True, kw_only=True):
    """Show the operations of a stashed batch."""


def run(options: Options, app: Invocation) -> StashResult:
    """Reads the batch."""
    stashed = StashFile(app.store.need_workspace()).get(options.number)
    return StashResult.of(options.number, stashed)


def show(result: StashResult, output: Output) -> None:
    """Prints one line for each change."""
    list_changes(output, changes_of(result.batch.staged))
