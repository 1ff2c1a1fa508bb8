"""`nessie store load`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.store.copies import StoreCopy, local_store_url, verify_now
from nessie_cli.errors import ReferenceNotFound
from nessie_cli.store.backup import load_backup
from nessie_cli.workspace.folder import Workspace

EXAMPLES = (
    "nessie store load lake.backup --store sqlite:////srv/catalog.sqlite",
    "nessie store load lake.backup --store catalog.sqlite --json",
)


class Options(Struct, frozen=True, kw_only=True):
    """Load a backup, or any SQLite store, into an empty store.

    The store can be SQLite or PostgreSQL (--store) and is created if it does not exist. A store
    counts as empty if it is as `nessie init` creates it. All hashes are kept. The file is
    verified first. If the load fails, nothing is loaded.
    """

    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A backup, or any other SQLite store.")
    ]


def run(options: Options, app: Invocation) -> StoreCopy:
    """Loads the file into the store."""
    url, file = local_store_url(app), str(options.file.absolute())
    with app.at_work("loading") as progress:
        copy = StoreCopy.of(url, file, load_backup(file, url, progress, verify_now))
    if app.workspace and app.workspace.store() == url:
        _check_current_reference(app, app.workspace)
    return copy


def _check_current_reference(app: Invocation, workspace: Workspace) -> None:
    """Prints a hint if the current reference of the workspace is not in the loaded store."""
    name, repository = workspace.current_reference(), app.repository()
    try:
        if name:
            repository.reference(name)
    except ReferenceNotFound:
        default = repository.config().default_branch
        app.output.note(
            f"hint: the current reference '{name}' is not in the loaded store; `nessie switch"
            f" {default}` sets another one"
        )


def show(result: StoreCopy, output: Output) -> None:
    """Prints how much was loaded."""
    output.say(f"loaded {result.file} into {result.store}: {result.summary}")
