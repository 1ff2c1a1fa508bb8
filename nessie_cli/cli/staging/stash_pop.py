"""`nessie stash pop`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.staging.stashes import NumberOptions, StashResult, print_staged, stage_stash

EXAMPLES = ("nessie stash pop",)


class Options(NumberOptions, frozen=True, kw_only=True):
    """Stage a stashed batch, and delete it from the stash.

    The batch is staged for the current branch, even if it was stashed on another one. Fails if a
    batch is staged: commit, stash or reset it first.
    """


def run(options: Options, app: Invocation) -> StashResult:
    """Stages the batch and deletes it from the stash."""
    return stage_stash(app, options.number, keep=False)


show = print_staged
