"""`nessie stash list`."""

from collections.abc import Sequence

from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.staging.stashes import Stash, StashResult
from nessie_cli.render.spans import Column
from nessie_cli.workspace.stash import StashFile

EXAMPLES = ("nessie stash list", "nessie stash list --json")
_COLUMNS = (
    Column("NO", right=True),
    Column("WHEN", "time"),
    Column("ON", "name"),
    Column("KEYS", right=True),
    Column("MESSAGE", room="cut"),
)


class Options(Struct, frozen=True, kw_only=True):
    """List the stashed batches, newest first."""


class Stashes(Listing, frozen=True, kw_only=True):
    """The stashed batches, newest first."""

    listing = "stashes"
    stashes: Records[Stash]


class StashesResult(Result, frozen=True):
    """The stashed batches, newest first."""

    stashes: Sequence[StashResult]

    @property
    def document(self) -> Stashes:
        """The JSON document."""
        return Stashes(stashes=(stash.document for stash in self.stashes))


def run(options: Options, app: Invocation) -> StashesResult:  # noqa: ARG001 - the shape of a command
    """Reads the stash."""
    stashes = StashFile(app.store.need_workspace()).read()
    return StashesResult(
        [StashResult.of(number, stashed) for number, stashed in enumerate(stashes)]
    )


def show(result: StashesResult, output: Output) -> None:
    """Prints a table with a row for each batch."""
    out = output.out
    rows = (
        (
            str(stash.number),
            out.time(stash.time),
            stash.batch.reference,
            str(stash.keys),
            stash.message,
        )
        for stash in result.stashes
    )
    out.print_table(_COLUMNS, rows)
