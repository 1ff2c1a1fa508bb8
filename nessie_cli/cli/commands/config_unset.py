"""`nessie config unset`."""

import typer

from nessie_cli.cli import configuring
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import SettingNotFound

EXAMPLES = ("nessie config unset alias.lg", "nessie config unset default-profile --user", "nessie config unset protect.main --repository")


def config_unset(
    ctx: typer.Context,
    name: configuring.Key,
    *,
    user: configuring.User = False,
    workspace: configuring.Workspace = False,
    repository: configuring.Repository = False,
) -> None:
    """Remove one setting; everything else in the file stays."""
    call = Invocation.of(ctx)
    scope = configuring.scope_of(user=user, workspace=workspace, repository=repository)
    # What is set is what is removed, also one that this version does not know.
    found = configuring.find(call, name, scope)
    if found is None:
        configuring.setting_named(name, scope)
        raise SettingNotFound(f"'{name}' is not set; `nessie config list` shows what is", name)
    configuring.write(call, name, None, found.scope)
    if call.wants_json:
        call.answer(configuring.document(found))
    else:
        call.say(f"removed: {name} = {found.value}")
