"""`nessie config list`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records
from nessie_cli.cli.config.options import ScopeOptions
from nessie_cli.cli.config.settings import Setting, settings_of
from nessie_cli.model import described_setting
from nessie_cli.render.spans import Column
from nessie_cli.workspace.known import Scope

EXAMPLES = (
    "nessie config list",
    "nessie config list --user --json",
    "nessie config list --repository",
)
_COLUMNS = (Column("NAME", "name", "fold"), Column("VALUE", room="fold"), Column("SCOPE", "label"))


class Options(ScopeOptions, frozen=True, kw_only=True):
    """List the settings that have a value: name, value and scope.

    Without an option, lists the settings of this workspace and then your own. If both have a
    setting, the workspace's value takes precedence; but aliases of a workspace that is not trusted
    are ignored. `nessie help config` describes every setting.
    """

    user: Annotated[
        bool,
        typer.Option("--user", help="List your own settings, which apply in every workspace."),
    ] = False
    workspace: Annotated[
        bool, typer.Option("--workspace", help="List the settings of this workspace.")
    ] = False
    repository: Annotated[
        bool,
        typer.Option(
            "--repository", help="List the repository's settings, which apply to every client."
        ),
    ] = False


class Settings(Listing, frozen=True, kw_only=True):
    """Settings; those of the workspace before those of the user."""

    listing = "settings"
    settings: Records[Setting]


def run(options: Options, app: Invocation) -> Settings:
    """Reads the settings."""
    return Settings(settings=list(settings_of(app, options.scope)))


def show(result: Settings, output: Output) -> None:
    """Prints a table with a row for each setting."""
    output.out.print_table(
        _COLUMNS,
        ((setting.key, _value(setting), setting.scope.value) for setting in result.settings),
    )


def _value(setting: Setting) -> str:
    is_shared = setting.scope is Scope.REPOSITORY
    return described_setting(setting.key, setting.value) if is_shared else setting.value
