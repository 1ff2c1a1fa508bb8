"""`nessie store backup`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.store.copies import StoreCopy, local_store_url, verify_now
from nessie_cli.store.backup import back_up

EXAMPLES = ("nessie store backup lake.backup", "nessie store backup /srv/lake.backup --json")


class Options(Struct, frozen=True, kw_only=True):
    """Write one consistent state of the store to a new SQLite file.

    Other commands can read and write the store during the backup. FILE appears when it is complete,
    and is a store itself: open it with --store FILE. If anything in the store is damaged or
    missing, the command fails and writes nothing. Needs direct access to the store: for a SQLite
    store behind a server, run it on the server's machine.
    """

    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to create. It must not exist.")
    ]


def run(options: Options, app: Invocation) -> StoreCopy:
    """Backs up the store to the file."""
    url, file = local_store_url(app), str(options.file.absolute())
    with app.at_work("backing up") as progress:
        return StoreCopy.of(url, file, back_up(url, file, progress, verify_now))


def show(result: StoreCopy, output: Output) -> None:
    """Prints how much was backed up."""
    output.say(f"backed up {result.store} to {result.file}: {result.summary}")
