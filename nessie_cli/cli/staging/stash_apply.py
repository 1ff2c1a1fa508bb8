"""`nessie stash apply`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.staging.stashes import NumberOptions, StashResult, print_staged, stage_stash

EXAMPLES = ("nessie stash apply 1",)


class Options(NumberOptions, frozen=True, kw_only=True):
    """Stage a stashed batch, and keep it in the stash.

    The batch is staged for the current branch, even if it was stashed on another one. Fails if a
    batch is staged: commit, stash or reset it first.
    """


def run(options: Options, app: Invocation) -> StashResult:
    """Stages the batch."""
    return stage_stash(app, options.number, keep=True)


show = print_staged
