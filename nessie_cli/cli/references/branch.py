"""`nessie branch`."""

from dataclasses import dataclass

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.references.options import ReferenceOptions
from nessie_cli.cli.references.results import (
    DeletedReferences,
    References,
    SingleReference,
    show,
)
from nessie_cli.cli.references.work import work
from nessie_cli.model import ReferenceType

__all__ = ["EXAMPLES", "Options", "run", "show"]

EXAMPLES = (
    "nessie branch -v --sort -time",
    "nessie branch --no-merged main",
    "nessie branch feature",
    "nessie branch hotfix v1 --if-not-exists",
    "nessie branch -m feature orders-rework",
    "nessie branch -f feature main~2 --expected-hash 8f31c0de",
    "nessie branch -d feature",
)


@dataclass(frozen=True, kw_only=True)
class Options(ReferenceOptions):
    """List, create, delete, rename or assign branches.

    With -v the list shows how many commits each branch is ahead of and behind the default branch,
    and its last commit. Commits are counted along first parents, as in the REST API: a merged
    branch is still ahead by its own commits.
    """


def run(
    options: Options,
    app: Invocation,
) -> References | SingleReference | DeletedReferences | None:
    """Performs the one action that the options ask for."""
    return work(options, app, ReferenceType.BRANCH)
