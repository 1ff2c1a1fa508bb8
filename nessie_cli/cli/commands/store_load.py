"""`nessie store load`."""

from pathlib import Path
from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.store_copies import local_store_url, report_copy

EXAMPLES = (
    "nessie store load lake.backup --store sqlite:////srv/catalog.sqlite",
    "nessie store load lake.backup --store catalog.sqlite --json",
)


def store_load(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A backup, or any other SQLite store.")],
) -> None:
    """Load a backup, or any SQLite store, into an empty store.

    The store can be SQLite or PostgreSQL (--store) and is created if it does not exist. A store without commits, as
    `nessie init` creates it, counts as empty. All hashes stay equal. Either everything is loaded or nothing.
    """
    call = Invocation.of(ctx)
    url, path = local_store_url(call), str(Path(file).absolute())
    from nessie_cli.cli.heard import progress_of
    from nessie_cli.store.backup import load_backup

    with progress_of(call, "loading") as progress:
        counts = load_backup(path, url, progress)
    report_copy(call, f"loaded {path} into {url}", url, path, counts)
