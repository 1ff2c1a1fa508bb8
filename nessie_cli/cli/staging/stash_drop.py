"""`nessie stash drop`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.stashes import NumberOptions, StashResult
from nessie_cli.render.text import counted
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash drop", "nessie stash drop 2")


class Options(NumberOptions, frozen=True, kw_only=True):
    """Delete a stashed batch.

    There is no confirmation.
    """


def run(options: Options, app: Invocation) -> StashResult:
    """Deletes the batch."""
    workspace = app.store.need_workspace()
    with app.batch_file().changing():
        dropped = StashFile(workspace).drop(options.number)
    return StashResult.of(options.number, dropped)


def show(result: StashResult, output: Output) -> None:
    """Prints the message of the batch."""
    unnamed = f"batch of {counted(result.keys, 'key')}"
    output.say(f"dropped: {result.message or unnamed}")
