"""`nessie config unset`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.config.options import KeyOptions
from nessie_cli.cli.config.settings import Setting, need_setting
from nessie_cli.cli.config.writing import write_setting
from nessie_cli.model import described_setting
from nessie_cli.workspace.known import Scope

EXAMPLES = (
    "nessie config unset alias.lg",
    "nessie config unset default-profile --user",
    "nessie config unset protect.main --repository",
)


class Options(KeyOptions, frozen=True, kw_only=True):
    """Remove a setting.

    Without --user, --workspace or --repository, removes the workspace's setting, or the user's if
    the workspace does not have it. Exits with 4 if the setting is not set or does not exist. Only
    the line of the setting is removed, and the heading of a table without other settings and
    comments.
    """


def run(options: Options, app: Invocation) -> Setting:
    """Removes the setting."""
    setting = need_setting(app, options.key, options.scope)
    write_setting(app, options.key, None, setting.scope)
    return setting


def show(result: Setting, output: Output) -> None:
    """Prints the setting as it was."""
    is_shared = result.scope is Scope.REPOSITORY
    value = described_setting(result.key, result.value) if is_shared else result.value
    output.say(f"removed: {result.key} = {value}")
