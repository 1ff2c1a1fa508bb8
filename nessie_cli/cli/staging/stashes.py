"""Shared parts of `nessie stash`: a stashed batch, its number, and staging it again."""

from datetime import datetime
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.staging.batch import Batch, BatchResult, changes_of, print_changes
from nessie_cli.cli.staging.submission import head_of_branch, read_batch
from nessie_cli.errors import InvalidInput
from nessie_cli.wire.scalars import Count, Instant, instant
from nessie_cli.workspace.stash import Stashed, StashFile


class NumberOptions(Struct, frozen=True, kw_only=True):
    """The options of a command about one stashed batch."""

    number: Annotated[
        int,
        typer.Argument(
            metavar="[N]",
            help="The number from `nessie stash list`. Default: 0, the newest.",
            show_default=False,
        ),
    ] = 0


class Stash(Document, frozen=True):
    """A stashed batch."""

    number: Count
    message: str
    time: Instant
    batch: Batch


class StashResult(Result, frozen=True):
    """A stashed batch, and the number of operations that are still staged."""

    number: int
    message: str
    time: datetime
    batch: BatchResult
    left: int = 0

    @property
    def document(self) -> Stash:
        """The JSON document."""
        return Stash(self.number, self.message, instant(self.time), self.batch.document)

    @classmethod
    def of(cls, number: int, stashed: Stashed, left: int = 0) -> "StashResult":
        """Returns a stashed batch with its number."""
        return cls(
            number,
            stashed.message,
            stashed.time,
            BatchResult.of(stashed.batch, stashed.reference),
            left,
        )

    @property
    def keys(self) -> int:
        """The number of keys that the batch changes."""
        return len({item.key for item in self.batch.staged})


def stage_stash(app: Invocation, number: int, *, keep: bool) -> StashResult:
    """Stages a stashed batch for the current branch.

    Raises `InvalidInput` if a batch is already staged, or if the current reference is a tag.
    """
    stashes = StashFile(app.store.need_workspace())
    with app.batch_file().changing() as file:
        stashed = stashes.get(number)
        staged, _ = read_batch(app, file)
        if staged is not None:
            raise InvalidInput(
                "a batch is already staged; `nessie commit`, `nessie stash` or `nessie reset` first"
            )
        batch = stashed.batch
        store, branch = app.store.name(), app.reference_name()
        # Refuses a tag, on which the batch could not be committed.
        head_of_branch(app.repository(), branch)
        if batch.store not in (None, store):
            raise InvalidInput(
                f"that batch is for the store {batch.store}, not for {store}",
                hint="name the store by --store",
            )
        file.write(replace(batch, branch=branch, store=store))
        if not keep:
            stashes.drop(number)
    if batch.branch not in (None, branch):
        app.output.note(f"the batch was staged for {batch.branch}; it is now for {branch}")
    return StashResult.of(number, stashed)


def print_staged(stash: StashResult, output: Output) -> None:
    """Prints the changes of a batch that was staged from the stash."""
    print_changes(output, changes_of(stash.batch.staged))
    output.note("`nessie status` shows what would conflict")
