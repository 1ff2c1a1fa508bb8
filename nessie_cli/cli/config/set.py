"""`nessie config set`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.aliases import check_alias
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.config.options import KeyOptions
from nessie_cli.cli.config.settings import Setting
from nessie_cli.cli.config.writing import scope_to_write, stored_form, with_value, write_setting
from nessie_cli.workspace.known import Scope, check_value, parse_name

EXAMPLES = (
    "nessie config set author 'Ada <ada@example.org>'",
    "nessie config set profile.work.store sqlite:////srv/catalog.sqlite",
    "nessie config set alias.lg 'log --oneline --graph --all' --user",
    "nessie config set safe-directories /srv/lake --add",
    "nessie config set protect.main no-delete,no-rewind --repository",
)


class Options(KeyOptions, frozen=True, kw_only=True):
    """Change a setting.

    Without --user, --workspace or --repository, settings that exist only per user (profile.*,
    default-profile, safe-directories, trusted-endpoints, allow-http) are written to the user
    settings, and other settings to the workspace. Settings of the repository need --repository.
    `nessie help config` describes every setting.

    There are no settings for passwords and tokens, and URLs that contain one are refused. Other
    settings and comments in the file do not change.
    """

    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value.")]
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="Append VALUE to the list instead of replacing the list. Only for"
            " safe-directories, trusted-endpoints and allow-http.",
        ),
    ] = False


class ChangedSetting(Setting, frozen=True):
    """A changed setting and its previous value, null if it was not set."""

    previous: str | None


def run(options: Options, app: Invocation) -> ChangedSetting:
    """Checks and writes the setting."""
    name, value = options.key, options.value
    scope = scope_to_write(app, name, options.scope)
    check_value(name, value)
    if scope is not Scope.REPOSITORY and parse_name(name)[0] == "alias":
        check_alias(parse_name(name)[1], value)
    value = stored_form(name, value)
    if options.add:
        value = with_value(app, name, value, scope)
    return ChangedSetting(name, value, scope, write_setting(app, name, value, scope))


def show(result: ChangedSetting, output: Output) -> None:
    """Prints the setting as it is now."""
    output.say(f"{result.key} = {result.value}")
