"""`nessie branch`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.references.creation import copy
from nessie_cli.cli.references.options import ReferenceOptions
from nessie_cli.cli.references.results import (
    DeletedReferencesResult,
    ReferencesResult,
    SingleReferenceResult,
    show,
)
from nessie_cli.cli.references.work import refuse_without_effect, work
from nessie_cli.model import ReferenceType

__all__ = ["EXAMPLES", "Options", "run", "show"]

EXAMPLES = (
    "nessie branch -v --sort -time",
    "nessie branch --no-merged main",
    "nessie branch feature",
    "nessie branch hotfix v1 --if-not-exists",
    "nessie branch -m feature orders-rework",
    "nessie branch -c feature feature-backup",
    "nessie branch -f feature main~2 --expected-hash 8f31c0de",
    "nessie branch -d feature",
)


class Options(ReferenceOptions, frozen=True, kw_only=True):
    """List, create, delete, rename or assign branches.

    -v adds the last commit, and how many commits the branch is ahead of and behind the default
    branch. Commits are counted along first parents: merged commits still count as ahead.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        "reference": "branch",
        "references": "branches",
        "rename": "-m",
    }
    rename: Annotated[
        bool,
        typer.Option(
            "-m", "--move", help="Rename OLD, or the current branch, to NEW: -m [OLD] NEW."
        ),
    ] = False
    copy: Annotated[
        bool,
        typer.Option(
            "-c",
            "--copy",
            help="Create NEW at the head of OLD, or of the current branch: -c [OLD] NEW.",
        ),
    ] = False

    @property
    def actions(self) -> tuple[str, ...]:
        """The options that select an action. At most one is allowed."""
        return (*super().actions, "-c") if self.copy else super().actions


def run(
    options: Options,
    app: Invocation,
) -> ReferencesResult | SingleReferenceResult | DeletedReferencesResult | None:
    """Performs the selected action."""
    if options.actions == ("-c",):
        refuse_empty("-c [OLD] NEW", *options.texts)
        refuse_without_effect(options)
        return copy(options, app)
    return work(options, app, ReferenceType.BRANCH)
