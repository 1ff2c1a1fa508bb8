"""`nessie config get`."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.config.options import KeyOptions
from nessie_cli.cli.config.settings import Setting, need_setting

EXAMPLES = (
    "nessie config get author",
    "nessie config get profile.work.store --user",
    "nessie config get protect.main --repository",
)


class Options(KeyOptions, frozen=True, kw_only=True):
    """Print the value of a setting.

    Without --user, --workspace or --repository, prints the workspace's value, or the user's if the
    workspace has none. Exits with 4 if the setting is not set or does not exist. `nessie help
    config` describes every setting.
    """


def run(options: Options, app: Invocation) -> Setting:
    """Reads the setting."""
    return need_setting(app, options.key, options.scope)


def show(result: Setting, output: Output) -> None:
    """Prints the value alone."""
    output.out.print_line(result.value)
