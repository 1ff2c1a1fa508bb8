"""`nessie config list`."""

import typer

from nessie_cli.cli import configuring
from nessie_cli.cli.context import Invocation

EXAMPLES = ("nessie config list", "nessie config list --user --json", "nessie config list --repository")


def config_list(
    ctx: typer.Context,
    *,
    user: configuring.User = False,
    workspace: configuring.Workspace = False,
    repository: configuring.Repository = False,
) -> None:
    """List settings: name, value, and whose they are; without an option those of the workspace and yours."""
    call = Invocation.of(ctx)
    found = list(configuring.settings_of(call, configuring.scope_of(user=user, workspace=workspace, repository=repository)))
    if call.wants_json:
        call.answer_listing("settings", map(configuring.document, found))
        return
    from nessie_cli.render.spans import Column

    columns = (Column("NAME", "name", "fold"), Column("VALUE", room="fold"), Column("WHOSE", "label"))
    call.out.print_table(columns, ((setting.name, setting.value, setting.scope.value) for setting in found))
