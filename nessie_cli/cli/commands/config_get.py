"""`nessie config get`."""

import typer

from nessie_cli.cli import configuring
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import SettingNotFound

EXAMPLES = ("nessie config get author", "nessie config get profile.work.store --user", "nessie config get protect.main --repository")


def config_get(
    ctx: typer.Context,
    name: configuring.Key,
    *,
    user: configuring.User = False,
    workspace: configuring.Workspace = False,
    repository: configuring.Repository = False,
) -> None:
    """Print the value of one setting; that of the workspace goes before yours."""
    call = Invocation.of(ctx)
    scope = configuring.scope_of(user=user, workspace=workspace, repository=repository)
    configuring.setting_named(name, scope)
    found = configuring.find(call, name, scope)
    if found is None:
        raise SettingNotFound(f"'{name}' is not set; `nessie config list` shows what is", name)
    if call.wants_json:
        call.answer(configuring.document(found))
    else:
        call.say(found.value)
