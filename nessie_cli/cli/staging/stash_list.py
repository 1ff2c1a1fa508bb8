"""`nessie stash list`."""

from collections.abc import Iterable

from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing
from nessie_cli.cli.staging.stashes import Stash
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
    stashes: Iterable[Stash]


def run(options: Options, app: Invocation) -> Stashes:  # noqa: ARG001 - the shape of a command
    """Reads the stash."""
    found = StashFile(app.store.need_workspace()).read()
    return Stashes(stashes=(Stash.of(number, stashed) for number, stashed in enumerate(found)))


def show(result: Stashes, output: Output) -> None:
    """Prints a table with a row for each batch."""
    out = output.out
    rows = (
        (str(one.number), out.time(one.time), one.batch.reference, str(one.keys), one.message)
        for one in result.stashes
    )
    out.print_table(_COLUMNS, rows)
