"""`nessie store backup`."""

from pathlib import Path
from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.store_copies import local_store_url, report_copy

EXAMPLES = ("nessie store backup lake.backup", "nessie store backup /srv/lake.backup --json")


def store_backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to create. It must not exist.")],
) -> None:
    """Write one consistent state of the store to a new SQLite file.

    Others can read and write the store meanwhile. FILE appears when it is complete, and is a store itself: --store FILE
    works on it. Stops at the first damaged object.
    """
    call = Invocation.of(ctx)
    url, path = local_store_url(call), str(Path(file).absolute())
    from nessie_cli.cli.heard import progress_of
    from nessie_cli.store.backup import back_up

    with progress_of(call, "backing up") as progress:
        counts = back_up(url, path, progress)
    report_copy(call, f"backed up {url} to {path}", url, path, counts)
