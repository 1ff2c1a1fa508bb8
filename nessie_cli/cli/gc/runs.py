"""The run that a command of `nessie gc` works on."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.engines import Engine
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.errors import StoreNotFound
from nessie_cli.gc.run import DEFAULT_FOLDER, Run, Runs
from nessie_cli.workspace.trust import TRUSTED

RunEngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        case_sensitive=False,
        help="Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or the engine of"
        " the run's `gc mark`.",
    ),
]


class FolderOptions(Struct, frozen=True, kw_only=True):
    """The option that all commands of `nessie gc` share."""

    runs_folder: Annotated[
        str | None,
        typer.Option(
            "--runs",
            metavar="DIR",
            help="The folder of the runs. Default: gc/ in the workspace's .nessie/.",
        ),
    ] = None

    def runs(self, app: Invocation) -> Runs:
        """Returns the folder of the runs.

        Raises `StoreNotFound` without a folder, and `NotAllowed` if only an untrusted workspace has
        one: a run names the files to delete.
        """
        if self.runs_folder is not None:
            return Runs(Path(self.runs_folder).absolute())
        workspace = app.store.workspace
        if workspace is None:
            raise StoreNotFound(
                "runs need a workspace, and there is none in this folder or a parent",
                hint="`nessie init` creates one, or name a folder with --runs",
            )
        if workspace.trust != TRUSTED:
            raise workspace.refusal("its runs are not used")
        return Runs(workspace.folder / DEFAULT_FOLDER)


class RunOptions(FolderOptions, frozen=True, kw_only=True):
    """The options of a command that works on an existing run."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The name of the run, or a unique prefix of it. Default: the newest run.",
        ),
    ] = None

    def run(self, app: Invocation) -> Run:
        """Returns the run. Raises `RunNotFound`, or `InvalidInput` for an ambiguous name."""
        return self.runs(app).open(self.name)
