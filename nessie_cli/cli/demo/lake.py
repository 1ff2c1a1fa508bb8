"""`nessie demo lake`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.errors import FileExists, StoreUnavailable
from nessie_cli.workspace.folder import DEFAULT_STORE, make_workspace
from nessie_cli.workspace.locations import FOLDER
from nessie_cli.workspace.trust_records import record_workspace

EXAMPLES = ("nessie demo lake lake", "nessie demo lake lake --conflict")
WAREHOUSE = "warehouse"


class Options(Struct, frozen=True, kw_only=True):
    """Make an example lake: a workspace with Iceberg tables on two branches.

    main has the tables sales.orders and sales.customers. The branch nightly changes both and adds
    the table sales.totals. The guides work on this lake. Requires PyIceberg
    (pip install 'nessie-cli[iceberg]').
    """

    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder to make, or one without a workspace and without a folder warehouse.",
        ),
    ]
    conflict: Annotated[
        bool,
        typer.Option(
            "--conflict",
            help="Also replace rows of sales.customers on main, so that a merge of nightly"
            " conflicts.",
        ),
    ] = False


class ExampleLake(Document, frozen=True, kw_only=True):
    """The lake: its folder, its store, and its branches."""

    workspace: str
    store: str
    branches: tuple[str, ...]


def run(options: Options, app: Invocation) -> ExampleLake:
    """Makes the workspace and the tables."""
    root = Path(options.folder).absolute()
    for name in (FOLDER, WAREHOUSE):
        if (root / name).exists():
            raise FileExists(f"{root / name} already exists", name, hint="name another folder")
    # First, so that nothing is made without PyIceberg.
    from nessie_cli.iceberg.example_lake import fill

    store = str(root / FOLDER / DEFAULT_STORE)
    workspace = make_workspace(root, None)
    record_workspace(str(root))
    with app.at_work("making the tables"):
        try:
            branches = fill(store, root / WAREHOUSE, conflict=options.conflict)
        except OSError as error:
            raise StoreUnavailable(f"{root} cannot be written: {error.strerror}") from None
    workspace.set_current_reference(branches[0])
    return ExampleLake(workspace=str(root), store=store, branches=branches)


def show(result: ExampleLake, output: Output) -> None:
    """Prints the folder and the branches."""
    main, nightly = result.branches
    output.say(f"made the example lake {result.workspace}: branches {main} and {nightly}")
    diff = command_line("-C", result.workspace, "diff", main, nightly, "--stat")
    output.note(f"`{diff}` compares them")
