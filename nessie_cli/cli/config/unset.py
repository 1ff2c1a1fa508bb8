"""`nessie config unset`."""

from dataclasses import dataclass

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.config.options import KeyOptions
from nessie_cli.cli.config.settings import Setting, need_setting
from nessie_cli.cli.config.writing import write_setting

EXAMPLES = (
    "nessie config unset alias.lg",
    "nessie config unset default-profile --user",
    "nessie config unset protect.main --repository",
)


@dataclass(frozen=True, kw_only=True)
class Options(KeyOptions):
    """Remove a setting.

    The rest of the file stays as it is, including comments. Without an option, the setting of this
    workspace is removed, or your own if the workspace does not have it.
    """


def run(options: Options, app: Invocation) -> Setting:
    """Removes the setting."""
    found = need_setting(app, options.key, options.scope)
    write_setting(app, options.key, None, found.scope)
    return found


def show(result: Setting, output: Output) -> None:
    """Prints the setting as it was."""
    output.say(f"removed: {result.key} = {result.value}")
